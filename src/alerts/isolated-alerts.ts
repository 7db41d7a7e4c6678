import type { Knex } from "knex";
import { groupNamed } from "../mirror/resources.ts";
import type {
  DeadEvent,
  FutureState,
  MaskedObject,
  MissingFact,
  News,
  Tell,
  ToldState,
} from "../mirror/listener.ts";
import { type Log, safeReason } from "../platform/log.ts";
import { inTransaction, isRetryableConflict } from "../platform/postgres/transactions.ts";
import type { AlertContext, FoundBy } from "./alert-context.ts";
import { assess, idsOf, affectedBy } from "./assess.ts";
import { raise } from "./raise-conditions.ts";
import { reportCardNumbers } from "./rules/card-numbers.ts";
import { reportDead, reportUnbelieved } from "./rules/events.ts";
import type { Condition } from "./timeline.ts";
import { type FailedCauses, type Undescribed, reportUndescribed } from "./undescribed.ts";

/** Writes the alerts of a transaction within it. Returns the objects to refetch. */
type WriteAlerts = (
  trx: Knex.Transaction,
  alertContext: AlertContext,
  news: Partial<News>,
  foundBy: FoundBy,
) => Promise<MissingFact[]>;

/**
 * Runs a transaction that changes data and writes its alerts, so that a failure of the alerts cannot fail the change.
 * Alerts are first written within the transaction without a savepoint, which costs nothing when all is well. If they
 * fail, the whole transaction runs a second time. Then they are written inside savepoints, in halves down to the one
 * object that cannot be described: that object gets an alert saying so, and all others get theirs. `transaction` opens
 * the transaction and must be repeatable. Throws errors unrelated to alerts, and those that another transaction caused
 * (`retryOnConflict`).
 */
export async function withIsolatedAlerts<T>(
  log: Log,
  alertContext: AlertContext,
  transaction: (tell: Tell) => Promise<T>,
): Promise<T> {
  const inContext =
    (tell: WriteAlerts): Tell =>
    (trx, news, source) =>
      tell(trx, alertContext, news, source);
  try {
    return await transaction(inContext(tellTogether));
  } catch (error) {
    if (!(error instanceof AlertsFailed)) throw error;
    log.warn(
      { err: error.cause },
      "the alerts of a transaction failed; they are written one by one",
    );
    return await transaction(inContext(describeInHalves(log)));
  }
}

/**
 * Carries the code of its cause, so that `retryOnConflict` repeats a transaction that failed because of another one.
 */
class AlertsFailed extends Error {
  override name = "AlertsFailed";
  readonly code: unknown;

  constructor(cause: unknown) {
    super("the alerts of a transaction failed", { cause });
    this.code = (cause as { code?: unknown } | null)?.code;
  }
}

const tellTogether: WriteAlerts = async (trx, alertContext, news, foundBy) => {
  try {
    return await tellAll(trx, alertContext, news, foundBy);
  } catch (error) {
    throw new AlertsFailed(error);
  }
};

const tellAll: WriteAlerts = async (trx, alertContext, news, foundBy) => {
  const { states = [], masked = [], future = [], dead = [] } = news;
  await reportCardNumbers(trx, alertContext, masked, foundBy);
  await reportUnbelieved(trx, alertContext, future, foundBy);
  const missing = await assess(trx, alertContext, states, foundBy);
  await reportDead(trx, alertContext, dead);
  return missing;
};

/**
 * Raises conditions in transactions of its own: all together, or one by one where that fails, so that a condition that
 * cannot be described does not prevent the others. `named` says what they are about. Returns whether all were
 * described. Throws nothing; idempotent.
 */
export async function raiseIsolated(
  deps: { db: Knex; log: Log },
  alertContext: AlertContext,
  conditions: readonly Condition[],
  named: ObjectInBrief,
): Promise<boolean> {
  try {
    await inTransaction(deps.db, (trx) => raise(trx, alertContext, conditions, "reconciliation"));
    return true;
  } catch (err) {
    deps.log.warn({ err }, "alerts failed; they are written one by one");
  }
  for (const condition of conditions) {
    await describedOrNamed(deps, alertContext, { ...named, id: condition.key }, () =>
      inTransaction(deps.db, (trx) => raise(trx, alertContext, [condition], "reconciliation")),
    );
  }
  return false;
}

/** Runs `describe`. If it fails, raises an alert that says so. Throws nothing. */
export async function describedOrNamed(
  { db, log }: { db: Knex; log: Log },
  alertContext: AlertContext,
  named: ObjectInBrief,
  describe: () => Promise<void>,
): Promise<void> {
  const { resource, id } = named;
  try {
    await describe();
  } catch (err) {
    log.error({ err, resource, id }, "an alert could not be composed");
    try {
      await inTransaction(db, (trx) =>
        reportUndescribed(
          trx,
          alertContext,
          // The next run assesses it again.
          [{ ...named, reason: safeReason(err), failed: null }],
          "reconciliation",
        ),
      );
    } catch (again) {
      log.error({ err: again }, "the alert about alerts that could not be composed failed too");
    }
  }
}

/**
 * The budget for all descriptions, well below the time limit of a mirror transaction. What remains after it is only
 * named.
 */
const budgetMs = 6_000;
const statementTimeoutMs = 2_000;
const lockTimeoutMs = 250;

/** The little that an alert says of an object that cannot be described. */
export type ObjectInBrief = Omit<Undescribed, "reason" | "failed">;

/** One object or event, with the little that an alert says of it if it cannot be described. */
interface Piece extends Partial<News> {
  named: ObjectInBrief;
}

const describeInHalves =
  (log: Log): WriteAlerts =>
  async (trx, alertContext, news, foundBy) => {
    const pieces = piecesOf(news);
    if (pieces.length === 0) return [];
    const limits = await shortenLimits(trx);
    const giveUpAt = alertContext.clock.now().getTime() + budgetMs;
    const missing = await tellPieces(pieces);
    await setLimits(trx, limits);
    return missing;

    async function tellPieces(some: readonly Piece[]): Promise<MissingFact[]> {
      let reason: unknown = null;
      if (alertContext.clock.now().getTime() < giveUpAt) {
        try {
          return await inTransaction(trx, (savepoint) =>
            tellAll(savepoint, alertContext, joined(some), foundBy),
          );
        } catch (error) {
          if (isDeadlock(error)) throw error;
          reason = error;
        }
        if (some.length > 1) {
          const half = Math.ceil(some.length / 2);
          const first = await tellPieces(some.slice(0, half));
          return [...first, ...(await tellPieces(some.slice(half)))];
        }
      }
      await nameAll(some, reason);
      return [];
    }

    async function nameAll(some: readonly Piece[], reason: unknown): Promise<void> {
      for (const { named } of some) {
        const { resource, id } = named;
        log.error({ err: reason, resource, id }, "an alert could not be composed");
      }
      try {
        const undescribed = some.map((piece) => ({
          ...piece.named,
          reason: reason === null ? "no time was left" : safeReason(reason),
          failed: failedOf(piece, foundBy),
        }));
        await inTransaction(trx, (savepoint) =>
          reportUndescribed(savepoint, alertContext, undescribed, foundBy),
        );
      } catch (err) {
        if (isDeadlock(err)) throw err;
        log.error({ err }, "the alert about alerts that could not be composed failed too");
      }
    }
  };

const failedOf = (
  { states = [], masked = [], future = [], dead = [] }: Piece,
  foundBy: FoundBy,
): FailedCauses => ({
  foundBy,
  masked: [...masked, ...states.flatMap(({ maskedCardNumbers }) => maskedCardNumbers ?? [])],
  future,
  affected: states.length === 0 ? null : idsOf(affectedBy(states)),
  dead,
});

/** The server chose this transaction as the victim of a deadlock. A lock time-out is a different case. */
const isDeadlock = (error: unknown): boolean =>
  isRetryableConflict(error) && (error as { code?: unknown }).code !== "55P03";

const joined = (pieces: readonly Piece[]): News => ({
  states: pieces.flatMap(({ states = [] }) => states),
  masked: pieces.flatMap(({ masked = [] }) => masked),
  future: pieces.flatMap(({ future = [] }) => future),
  dead: pieces.flatMap(({ dead = [] }) => dead),
});

function piecesOf({ states = [], masked = [], future = [], dead = [] }: Partial<News>): Piece[] {
  const byObject = new Map<string, ToldState[]>();
  for (const state of states) {
    const object = `${resourceOf(state)}:${state.id}`;
    byObject.set(object, [...(byObject.get(object) ?? []), state]);
  }
  return [
    ...masked.map((one) => ({ masked: [one], named: namedCardNumber(one) })),
    ...future.map((one) => ({ future: [one], named: namedFuture(one) })),
    ...[...byObject.values()].map((own) => ({ states: own, named: namedObject(own) })),
    ...dead.map((one) => ({ dead: [one], named: namedEvent(one) })),
  ];
}

/** The group `order.dunning` belongs to the resource `order`. */
const resourceOf = ({ group }: Pick<ToldState, "group">): string =>
  groupNamed(group)?.resource.name ?? group;

function namedObject(states: readonly ToldState[]): ObjectInBrief {
  const [{ id, group }] = states as [ToldState];
  const columns = Object.assign({}, ...states.map((state) => state.columns)) as Record<
    string,
    unknown
  >;
  const amount = columns[groupNamed(group)?.resource.amount ?? ""];
  const { currency } = columns;
  const isShown = typeof amount === "number" || typeof amount === "string";
  return {
    resource: resourceOf({ group }),
    id,
    orderNumber: typeof columns["order_number"] === "string" ? columns["order_number"] : null,
    money: isShown
      ? `${amount} minor units${typeof currency === "string" ? ` of ${currency}` : ""}`
      : null,
    command: `node src/bin/tallyhook.js events list --resource ${id}`,
  };
}

const nothingShown = { orderNumber: null, money: null } as const;

const namedCardNumber = ({ resource, id }: MaskedObject): ObjectInBrief => ({
  ...nothingShown,
  resource: `card number in the ${resource}`,
  id,
  command: `node src/bin/tallyhook.js events list --resource ${id}`,
});

const namedFuture = ({ group, id }: FutureState): ObjectInBrief => ({
  ...nothingShown,
  resource: `state of the future of the ${resourceOf({ group })}`,
  id,
  command: `node src/bin/tallyhook.js events list --resource ${id}`,
});

const namedEvent = ({ seq }: DeadEvent): ObjectInBrief => ({
  ...nothingShown,
  resource: "dead event",
  id: String(seq),
  command: `node src/bin/tallyhook.js events show ${seq}`,
});

interface Limits {
  statement: string;
  lock: string;
}

async function shortenLimits(trx: Knex): Promise<Limits> {
  const { rows } = await trx.raw<{ rows: [Limits] }>(
    `select current_setting('statement_timeout') as statement, current_setting('lock_timeout') as lock`,
  );
  await setLimits(trx, { statement: String(statementTimeoutMs), lock: String(lockTimeoutMs) });
  return rows[0];
}

/** Sets time limits until the transaction ends. */
const setLimits = async (trx: Knex, { statement, lock }: Limits): Promise<void> => {
  await trx.raw(
    "select set_config('statement_timeout', ?, true), set_config('lock_timeout', ?, true)",
    [statement, lock],
  );
};
