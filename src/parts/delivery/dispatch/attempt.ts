import { createHash } from "node:crypto";
import type { Knex } from "knex";
import type { ServiceClient } from "../../../core/client/service-client.ts";
import { endpoints } from "../../../core/contract/endpoints.ts";
import type { Change } from "../../../core/mirror/changes/read-changes.ts";
import { TallyhookError } from "../../../platform/errors.ts";
import type { Log } from "../../../platform/log.ts";
import { moneyText } from "../../../platform/money.ts";
import { errorCode } from "../../../platform/postgres/errors.ts";
import { inTransaction, settingLimits } from "../../../platform/postgres/transactions.ts";
import { type Handler, isRetryLater } from "./define-handler.ts";
import type { HandledObject } from "./feed-source.ts";
import { AttemptFailed } from "./recipient.ts";

export interface AttemptDeps {
  /** Only for handlers, so that one that keeps connections holds up no other work. */
  handlersDb: Knex;
  client: ServiceClient;
  log: Log;
}

export interface Attempt {
  change: Change;
  /** Null if the mirror has not seen it yet: the attempt fails. */
  object: HandledObject | null;
  idempotencyKey: string;
  isTest: boolean;
}

/** A call that keeps its process from all else for longer is named in the log. */
const longBlockMs = 1_000;

/**
 * Calls a handler, until its deadline at most. Where it is transactional, `finish` belongs to its transaction, which is
 * rolled back if either throws. Throws the handler's error (`ThrewNoError` where that is no error), `DeadlineExceeded`,
 * `ObjectNotSeen`, or `AttemptFailed` where the handler ended its transaction itself.
 */
export async function attemptRun(
  { handlersDb, client, log }: AttemptDeps,
  handler: Handler,
  { change, object, idempotencyKey, isTest }: Attempt,
  finish: (trx: Knex.Transaction) => Promise<void>,
): Promise<void> {
  if (object === null) throw new ObjectNotSeen(change);
  const call = (db: Knex): Promise<void> =>
    withinDeadline(handler.deadlineMs, (signal) => {
      const own = log.child({ handler: handler.name, change: change.seq });
      const tools = {
        change,
        idempotencyKey,
        client,
        endpoints,
        db,
        log: own,
        moneyText,
        signal,
        isTest,
      };
      const begunMs = performance.now();
      try {
        return handler.run({ ...tools, [change.resource]: object } as never);
      } finally {
        const blockedMs = Math.round(performance.now() - begunMs);
        if (blockedMs > longBlockMs) own.warn({ blockedMs }, blocked);
      }
    });
  if (!handler.transactional) return call(handlersDb);
  let isFinished = false;
  await inTransaction(handlersDb, async (trx) => {
    await beginAttempt(trx, { mark: idempotencyKey, deadlineMs: handler.deadlineMs });
    try {
      await call(trx);
    } catch (error) {
      // While its call is running, the connection may be busy; the call's writes there are rolled back.
      if (!(error instanceof DeadlineExceeded) && (await hasEnded(trx, idempotencyKey))) {
        throw endedItself(error);
      }
      throw error;
    }
    if (await hasEnded(trx, idempotencyKey)) throw endedItself();
    await finish(trx);
    isFinished = true;
  });
  // A commit by Knex resolves the transaction, regardless of later statements.
  if (!isFinished) throw endedItself();
}

/** Its writes are committed, and would be repeated. */
const endedItself = (cause?: unknown): AttemptFailed =>
  new AttemptFailed(
    "the handler ended its transaction itself: what it wrote may stand, so it is not run again. Leave commit and " +
      "rollback to the engine",
    { isFinal: true },
    { cause },
  );

const blocked = "a handler blocks its process: it computes for long, or waits without await";

/**
 * Limits the attempt's transaction: a statement that hangs, or a process that was stopped, would keep it from being
 * rolled back. Leaves a mark that vanishes with it.
 */
async function beginAttempt(
  trx: Knex.Transaction,
  { mark, deadlineMs }: { mark: string; deadlineMs: number },
): Promise<void> {
  const limitMs = deadlineMs + 1_000;
  const limits = { statementMs: limitMs, lockMs: null, transactionMs: limitMs };
  await trx.raw(`select ${settingLimits}, set_config('tallyhook.attempt', :mark, true)`, {
    ...limits,
    mark,
  });
}

/** Whether the attempt's transaction has ended, by Knex or by SQL, even if another one has begun since. */
async function hasEnded(trx: Knex.Transaction, mark: string): Promise<boolean> {
  if (trx.isCompleted()) return true;
  try {
    const { rows } = await trx.raw<{ rows: [{ mark: string | null }] }>(
      "select current_setting('tallyhook.attempt', true) as mark",
    );
    return rows[0].mark !== mark;
  } catch (error) {
    // A statement of the handler failed, and the transaction waits for its rollback.
    if (errorCode(error) === abortedTransaction) return false;
    throw error;
  }
}

const abortedTransaction = "25P02";

/** Does not wait for a handler that continues after its deadline. */
async function withinDeadline(deadlineMs: number, work: (signal: AbortSignal) => Promise<void> | void): Promise<void> {
  const deadline = new AbortController();
  const exceeded = new Promise<never>((_, reject) => {
    deadline.signal.addEventListener("abort", () => reject(deadline.signal.reason as Error), {
      once: true,
    });
  });
  const timer = setTimeout(() => deadline.abort(new DeadlineExceeded(deadlineMs, call)), deadlineMs);
  const call = (async () => work(deadline.signal))();
  try {
    await Promise.race([call, exceeded]);
  } catch (thrown) {
    throw isError(thrown) || isRetryLater(thrown) ? thrown : new ThrewNoError(thrown);
  } finally {
    clearTimeout(timer);
  }
}

export class DeadlineExceeded extends TallyhookError {
  /** The handler's call, which may outlast the deadline. */
  readonly call: Promise<void>;

  constructor(deadlineMs: number, call: Promise<void>) {
    super(`The handler took longer than its deadline of ${deadlineMs} ms.`);
    this.call = call;
  }
}

class ThrewNoError extends TallyhookError {
  constructor(thrown: unknown) {
    super(
      `The handler threw ${shownThrown(thrown)}, which is no error. Throw an Error: the log shows its message, and ` +
        "where it was made.",
    );
  }
}

/** Reads no property of an object: that may throw again. */
function shownThrown(thrown: unknown): string {
  if (typeof thrown === "string") return `the text ${JSON.stringify(thrown.slice(0, 200))}`;
  if (typeof thrown === "object" && thrown !== null) return "an object";
  return typeof thrown === "function" || typeof thrown === "symbol" ? `a ${typeof thrown}` : String(thrown);
}

/** A proxy may throw when it is asked. */
function isError(thrown: unknown): boolean {
  try {
    return thrown instanceof Error;
  } catch {
    return false;
  }
}

class ObjectNotSeen extends TallyhookError {
  constructor({ resource, id }: Change) {
    super(`The mirror has not seen the ${resource} ${id} yet. It is being read from the service.`);
  }
}

/** A UUID v4 in form, the same at every attempt: `scope` separates deliveries that are no repeats of each other. */
export function idempotencyKeyOf(
  handler: string,
  { seq, resource, id, kind }: Pick<Change, "seq" | "resource" | "id" | "kind">,
  scope = "run",
): string {
  const text = JSON.stringify(["tallyhook", scope, handler, seq, resource, id, kind]);
  const hex = createHash("sha256").update(text).digest("hex");
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 3) | 8).toString(16);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `4${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join("-");
}
