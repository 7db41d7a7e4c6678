import type { Knex } from "knex";
import { z } from "zod";
import type { ServiceClient } from "../../../core/client/service-client.ts";
import type { customerSchema } from "../../../core/contract/resources/customers.ts";
import type { endpoints } from "../../../core/contract/endpoints.ts";
import type { orderSchema } from "../../../core/contract/resources/orders.ts";
import type { subscriptionSchema } from "../../../core/contract/resources/subscriptions.ts";
import type { transactionSchema } from "../../../core/contract/resources/transactions.ts";
import { canonicalTimestamp } from "../../../core/contract/timestamp.ts";
import type { Change } from "../../../core/mirror/changes/read-changes.ts";
import { kindNamed } from "../../../core/mirror/changes/kind-named.ts";
import type { ChangeKind } from "../../../core/mirror/changes/kinds.ts";
import { ConfigurationError } from "../../../platform/errors.ts";
import type { Log } from "../../../platform/log.ts";
import type { moneyText } from "../../../platform/money.ts";
import { nearestName } from "../../../platform/nearest-name.ts";

type WireOrder = z.output<typeof orderSchema>;
type WireSubscription = z.output<typeof subscriptionSchema>;

/** `Omit` would forget all names of an object that may have further ones. */
type Without<T, K> = { [P in keyof T as P extends K ? never : P]: T[P] };

/**
 * An order without its transactions, which are objects of their own. `items` are null where the mirror has never seen
 * them; `attempt_count` and `next_retry_at` are those of its last declined attempt up to then, null without one.
 */
export type Order = Without<WireOrder, "transactions">;
/** A subscription as events show it: what only a read by its id shows is left out. */
export type Subscription = Without<WireSubscription, "cycles" | "failure_reason" | "attempt_count" | "next_retry_at">;
export type Customer = z.output<typeof customerSchema>;
/** A transaction. Where only its order has shown it so far, it has the fields that orders show. */
export type Transaction = { id: string } & Partial<z.output<typeof transactionSchema>>;

/** The objects of the mirror, by the first word of a kind of change. */
export interface Objects {
  order: Order;
  subscription: Subscription;
  customer: Customer;
  transaction: Transaction;
}

type ResourceOf<K extends string> = K extends `${infer R extends keyof Objects}.${string}` ? R : never;

/** A change of a resource, of one of the kinds that the handler asked for. */
export type HandledChange<K extends ChangeKind, R extends keyof Objects> = Change & {
  resource: R;
  kind: Extract<K, `${R}.${string}`>;
};

/** Tools of every handler, in addition to the change and its object. */
interface Tools {
  /** A UUID of this handler and this change, the same at each attempt. Pass it to every system that accepts one. */
  idempotencyKey: string;
  /** Calls the service, at the pace that all of Tallyhook shares. */
  client: ServiceClient;
  /** Endpoints for `client`: `client.get(endpoints.getOrder, { params: { id } })`. */
  endpoints: typeof endpoints;
  /** The database. With `transactional`, the transaction that marks the change done: do not commit it. */
  db: Knex;
  log: Log;
  /** An amount in minor units as reports and alerts write it: `moneyText(1999, "usd")` → `19.99 USD`. */
  moneyText: typeof moneyText;
  /** Aborted at the deadline. */
  signal: AbortSignal;
  /** This is `tallyhook handlers test`: the change was handled before, or never will be. */
  isTest: boolean;
}

/** The input of `run`: the change, and the object under the name of its resource, as it was after the change. */
export type RunInput<K extends ChangeKind> = {
  [R in ResourceOf<K>]: Tools & { change: HandledChange<K, R> } & Pick<Objects, R> & {
      [Other in Exclude<ResourceOf<K>, R>]?: undefined;
    };
}[ResourceOf<K>];

export interface HandlerOptions<K extends ChangeKind> {
  /** Lower case letters, digits and hyphens. Its position in the feed is kept under it: another name starts over. */
  name: string;
  /** The kinds of change to receive. */
  on: readonly K[];
  /** The start of its first run: now (the default), at the first change, or at a time. */
  from?: "now" | "beginning" | (string & {});
  /** Whether it also receives imported changes, which are history. Default: false. */
  includeImport?: boolean;
  /** How many objects it handles at a time in one process. Default: 10. */
  concurrency?: number;
  /** How long an attempt may take. Default: 30 s. */
  deadlineMs?: number;
  /** After so many attempts a change is dead. Default: 12, which takes two hours. */
  attempts?: number;
  /** Run in the transaction that marks the change done, so that its writes through `db` happen exactly once. */
  transactional?: boolean;
  run(input: RunInput<K>): Promise<void> | void;
}

/** A checked definition, with all defaults. */
export interface Handler {
  readonly name: string;
  readonly on: readonly ChangeKind[];
  readonly from: string;
  readonly includeImport: boolean;
  readonly concurrency: number;
  readonly deadlineMs: number;
  readonly attempts: number;
  readonly transactional: boolean;
  readonly run: (input: never) => Promise<void> | void;
}

/** Known by these, and not by their class: handlers from elsewhere have another (src/bin/handlers.js). */
const retryLater: unique symbol = Symbol.for("tallyhook.retry-later");
const handlerMark: unique symbol = Symbol.for("tallyhook.handler");

/**
 * Thrown by a handler to be run again after a time: a second at least, a day at most. Counts as no attempt and no
 * failure, up to a thousand times for one change (`postponementOf`).
 */
export class RetryLater extends Error {
  readonly [retryLater] = true;
  readonly afterMs: number;
  /** The answer with the requested time, and the clock of that time. */
  readonly answer: { retryAfter: string | null; date: string | null } | null;

  /** @param afterMs milliseconds, or an answer whose `Retry-After` is used: a minute where it has none */
  constructor(afterMs: number | { headers: { get(name: string): string | null } }) {
    const isAnswer = typeof afterMs === "object";
    super(isAnswer ? "to be run again when the answer says" : `to be run again in ${afterMs} ms`);
    this.name = "RetryLater";
    this.afterMs = isAnswer ? 60_000 : afterMs;
    this.answer = isAnswer
      ? { retryAfter: afterMs.headers.get("retry-after"), date: afterMs.headers.get("date") }
      : null;
  }
}

/** Known by its mark: a handler from elsewhere has another class of that name. Never throws. */
export function isRetryLater(thrown: unknown): thrown is Partial<RetryLater> {
  try {
    return typeof thrown === "object" && thrown !== null && retryLater in thrown;
  } catch {
    // A proxy.
    return false;
  }
}

const aKind = z.string().transform((text, context): ChangeKind => {
  const found = kindNamed(text);
  if ("kind" in found) return found.kind;
  context.addIssue({ code: "custom", message: found.problem });
  return z.NEVER;
});

const wholeNumber = (min: number, max: number) =>
  z
    .int({ error: `must be a whole number from ${min} to ${max}` })
    .min(min, { error: `must be at least ${min}` })
    .max(max, { error: `must be at most ${max}` });

const definition = z.strictObject({
  name: z.string({ error: "is missing" }).regex(/^[a-z][a-z0-9-]{0,62}$/, {
    error: "must be 1 to 63 lower case letters, digits and hyphens, a letter first",
  }),
  on: z
    .array(aKind, { error: "must be a list of kinds of change" })
    .min(1, { error: "names no kind of change" })
    .transform((kinds) => [...new Set(kinds)]),
  from: z
    .string()
    .refine((text) => ["now", "beginning"].includes(text) || canonicalTimestamp(text) !== null, {
      error: 'must be "now", "beginning" or a time with its offset, such as 2026-03-01T12:00:00Z',
    })
    .default("now"),
  includeImport: z.boolean().default(false),
  concurrency: wholeNumber(1, 100).default(10),
  deadlineMs: wholeNumber(100, 900_000).default(30_000),
  attempts: wholeNumber(1, 100).default(12),
  transactional: z.boolean().default(false),
  run: z.custom<Handler["run"]>((value) => typeof value === "function", {
    error: "must be a function",
  }),
});

/**
 * Defines a handler, the default export of a file. Throws `ConfigurationError` where the definition is wrong, with each
 * wrong field.
 */
export const defineHandler = <const K extends ChangeKind>(options: HandlerOptions<K>): Handler => checkHandler(options);

/** Checks a definition, also one that was checked before. Throws as `defineHandler` does. */
export function checkHandler(options: unknown): Handler {
  const checked = definition.safeParse(options);
  if (checked.success) return Object.freeze(Object.assign(checked.data, { [handlerMark]: true }));
  const { name } = (options ?? {}) as { name?: unknown };
  const called = typeof name === "string" ? ` "${name.slice(0, 80)}"` : "";
  const problems = checked.error.issues.map(problemOf);
  throw new ConfigurationError(`The handler${called} is wrong: ${problems.join("; ")}.`);
}

function problemOf({ path, message, code, ...issue }: z.core.$ZodIssue): string {
  if (code === "unrecognized_keys" && "keys" in issue) {
    return issue.keys
      .map((key) => {
        const near = nearestName(key, Object.keys(definition.shape));
        return `it has no option "${key.slice(0, 80)}"${near === null ? "" : ` (did you mean "${near}"?)`}`;
      })
      .join("; ");
  }
  const field = path[0] === undefined ? "it" : `"${String(path[0])}"`;
  return message.startsWith('"') ? `${field}: ${message.replace(/\.$/, "")}` : `${field} ${message}`;
}

/** Whether `defineHandler` made it, also that of src/bin/handlers.js. */
export const isMarked = (value: unknown): boolean =>
  typeof value === "object" && value !== null && handlerMark in value;
