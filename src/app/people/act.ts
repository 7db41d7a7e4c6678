import type { Knex } from "knex";
import { UsageError } from "../../platform/errors.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";
import { type Actor, type RecordedAct, recordAct } from "./audit.ts";
import type { Fields } from "./fields.ts";
import type { Permission } from "./permissions.ts";

/**
 * An action of a person on the data kept here. It is defined once; a command and a form are its doors
 * (`main/cli/act-command.ts`, `dashboard/act-route.ts`).
 */
export interface Act<Deps, Input, Done> {
  /** The name in the record: a thing and a participle, as in `alert.acknowledged`. */
  readonly name: string;
  readonly permission: Permission;
  readonly fields: Fields<Input>;
  /** Throws `ActRefused` where it is impossible; then nothing was changed. */
  run(deps: Deps, call: ActCall<Input>): Promise<Done>;
}

/** An act that no page does, so no role has a permission for it. */
export type CommandAct<Deps, Input, Done> = Omit<Act<Deps, Input, Done>, "permission">;

export interface ActCall<Input> {
  actor: Actor;
  input: Input;
  /** The state that the person was shown, by the act's `version`; null: the act applies to any state. */
  decidedOn: string | null;
}

/** Any dependencies and result. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type AnyAct = Act<any, any, any>;

/**
 * The kind of refusal: a page answers 404 to `unknown`, 400 to `invalid`, 403 to `forbidden` (another person may), and
 * 409 to the others.
 */
export type Refusal = "unknown" | "invalid" | "forbidden" | "outdated" | "hindered";

/** An act was impossible, so nothing was changed. The message is a sentence for people that holds at every door. */
export class ActRefused extends UsageError {
  readonly refusal: Refusal;
  /** The present state of the act's object, where the refusal is about that. */
  readonly now: unknown;

  constructor(refusal: Refusal, message: string, { now = null, ...options }: { now?: unknown; cause?: unknown } = {}) {
    super(message, options);
    this.refusal = refusal;
    this.now = now;
  }
}

/** The decision was made on an earlier state. `what` begins the sentence: "Alert 12". */
export const outdated = (what: string, now: unknown = null): ActRefused =>
  new ActRefused(
    "outdated",
    `${what} has changed since it was shown, so nothing was done. Look at it again, then decide.`,
    { now },
  );

/** Writes the record of an act, in the transaction that does it. */
export const recordOf =
  ({ name }: Pick<AnyAct, "name">, { actor }: Pick<ActCall<unknown>, "actor">) =>
  (trx: Knex.Transaction, recorded: Omit<RecordedAct, "action">): Promise<void> =>
    recordAct(trx, actor, { action: name, ...recorded });

/** The kind of thing that acts are on. */
export interface ActSubject<Row> {
  /** A word for the record and for sentences: `alert`. */
  readonly kind: string;
  /** Finds the row by number, name or key, and locks it until the transaction ends; null where there is none. */
  lock(trx: Knex.Transaction, given: string): Promise<Row | null>;
  idOf(row: Row): string;
  /** The state on which a decision about the row depends. */
  version(row: Row): string;
}

interface Changed<Done> {
  done: Done;
  /** Null: it was already so, and there is nothing to record. */
  record: Omit<RecordedAct, "action" | "subject"> | null;
}

/**
 * An act that changes one row in one transaction. It finds and locks the row, refuses one that has changed since it was
 * shown, and records the change with it. `of` is the field that identifies the row.
 */
export function actOn<Row, Of extends string, Input extends Readonly<Record<Of, string>>, Deps extends object, Done>(
  subject: ActSubject<Row>,
  of: Of,
  definition: Pick<Act<Deps, Input, Done>, "name" | "permission" | "fields"> & {
    change(
      trx: Knex.Transaction,
      row: Row,
      call: Pick<ActCall<Input>, "actor" | "input">,
      deps: Deps,
    ): Promise<Changed<Done>>;
  },
): Act<Deps & { db: Knex }, Input, Done> {
  const { name, permission, fields, change } = definition;
  return {
    name,
    permission,
    fields,
    run: (deps, call) =>
      inTransaction(deps.db, async (trx) => {
        const row = await requireRow(trx, subject, call.input[of], call.decidedOn);
        const { done, record } = await change(trx, row, call, deps);
        if (record !== null) {
          const id = subject.idOf(row);
          await recordOf({ name }, call)(trx, { subject: { kind: subject.kind, id }, ...record });
        }
        return done;
      }),
  };
}

/** The row, locked, where it is as it was shown. Throws `ActRefused`. */
export async function requireRow<Row>(
  trx: Knex.Transaction,
  { kind, lock, idOf, version }: ActSubject<Row>,
  given: string,
  decidedOn: string | null,
): Promise<Row> {
  const row = await lock(trx, given);
  if (row === null) {
    throw new ActRefused("unknown", `There is no ${kind} "${given}".`);
  }
  if (decidedOn !== null && decidedOn !== version(row)) {
    throw outdated(`${kind.charAt(0).toUpperCase()}${kind.slice(1)} ${idOf(row)}`, row);
  }
  return row;
}
