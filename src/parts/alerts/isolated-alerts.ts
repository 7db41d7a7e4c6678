import type { Knex } from "knex";
import { groupNamed } from "../../core/mirror/resources.ts";
import type { MissingFact, News, Tell, ToldState } from "../../core/mirror/listener.ts";
import { tallyhook } from "../../platform/command-line.ts";
import { type Log, safeReason } from "../../platform/log.ts";
import { inTransaction, isRetryableConflict } from "../../platform/postgres/transactions.ts";
import type { AlertContext, FoundBy } from "./alert-context.ts";
import { assess, idsOf, affectedBy } from "./assess.ts";
import { raise } from "./raise-conditions.ts";
import { reportCardNumbers } from "./rules/card-numbers.ts";
import { reportDead, reportUnbelieved } from "./rules/events.ts";
import type { Condition } from "./timeline.ts";
import { type FailedCauses, type UndescribedNews, reportUndescribed } from "./undescribed.ts";

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
 * object that cannot be described: that object gets an alert about the failure, which the next sweep tries again
 * (`describeAgain`), and all others get theirs. `transaction` opens the transaction and must be repeatable. Throws
 * errors unrelated to alerts, and those that another transaction caused (`retryOnConflict`).
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
    log.warn({ err: error.cause }, "the alerts of a transaction failed; they are written one by one");
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
 * Raises each condition in a transaction of its own, so that one that cannot be described does not prevent the others.
 * `named`: their subjects. Returns whether all were described. Throws nothing; idempotent.
 */
export async function raiseIsolated(
  deps: { db: Knex; log: Log },
  alertContext: AlertContext,
  conditions: readonly Condition[],
  named: ObjectInBrief,
): Promise<boolean> {
  let areAllDescribed = true;
  for (const condition of conditions) {
    const isDescribed = await describedOrNamed(deps, alertContext, { ...named, id: condition.key }, () =>
      inTransaction(deps.db, (trx) => raise(trx, alertContext, [condition], "reconciliation")),
    );
    areAllDescribed &&= isDescribed;
  }
  return areAllDescribed;
}

/** Runs `describe`. If it fails, raises an alert about the failure. Returns whether it succeeded. Throws nothing. */
export async function describedOrNamed(
  { db, log }: { db: Knex; log: Log },
  alertContext: AlertContext,
  named: ObjectInBrief,
  describe: () => Promise<void>,
): Promise<boolean> {
  const { resource, id } = named;
  try {
    await describe();
    return true;
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
    return false;
  }
}

/**
 * The budget for all descriptions, well below the time limit of a mirror transaction. What remains after it is only
 * named.
 */
const budgetMs = 6_000;
/** The time limits of each description. */
const shortLimits: Limits = { statement: "2s", lock: "250ms" };

/** The reduced facts of an object that cannot be described. */
export type ObjectInBrief = Omit<UndescribedNews, "reason" | "failed">;

/** One object or event, with reduced facts in case it cannot be described. */
interface Piece extends Partial<News> {
  named: ObjectInBrief;
}

const describeInHalves =
  (log: Log): WriteAlerts =>
  async (trx, alertContext, news, foundBy) => {
    const pieces = piecesOf(news);
    if (pieces.length === 0) return [];
    const limits = await setLimits(trx, shortLimits);
    const giveUpAt = alertContext.clock.now().getTime() + budgetMs;
    const undescribed: UndescribedNews[] = [];
    const missing = await tellPieces(pieces);
    try {
      await inTransaction(trx, (savepoint) => reportUndescribed(savepoint, alertContext, undescribed, foundBy));
    } catch (err) {
      if (isDeadlock(err)) throw err;
      log.error({ err }, "the alert about alerts that could not be composed failed too");
    }
    await setLimits(trx, limits);
    return missing;

    /** In halves, since one by one a batch of 500 would take longer than the budget. */
    async function tellPieces(some: readonly Piece[]): Promise<MissingFact[]> {
      let failure: unknown = null;
      if (alertContext.clock.now().getTime() < giveUpAt) {
        try {
          return await inTransaction(trx, (savepoint) => tellAll(savepoint, alertContext, joined(some), foundBy));
        } catch (error) {
          if (isDeadlock(error)) throw error;
          failure = error;
        }
        if (some.length > 1) {
          const half = Math.ceil(some.length / 2);
          const first = await tellPieces(some.slice(0, half));
          return [...first, ...(await tellPieces(some.slice(half)))];
        }
      }
      for (const { named, ...piece } of some) {
        const { resource, id } = named;
        log.error({ err: failure, resource, id }, "an alert could not be composed");
        const reason = failure === null ? "no time was left" : safeReason(failure);
        undescribed.push({ ...named, reason, failed: failedOf(piece, foundBy) });
      }
      return [];
    }
  };

const joined = (pieces: readonly Piece[]): News => ({
  states: pieces.flatMap(({ states = [] }) => states),
  masked: pieces.flatMap(({ masked = [] }) => masked),
  future: pieces.flatMap(({ future = [] }) => future),
  dead: pieces.flatMap(({ dead = [] }) => dead),
});

const failedOf = (
  { states = [], masked = [], future = [], dead = [] }: Partial<News>,
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

function piecesOf({ states = [], masked = [], future = [], dead = [] }: Partial<News>): Piece[] {
  const byObject = new Map<string, ToldState[]>();
  for (const state of states) {
    const object = `${resourceOf(state)}:${state.id}`;
    byObject.set(object, [...(byObject.get(object) ?? []), state]);
  }
  return [
    ...masked.map((one) => ({
      masked: [one],
      named: inBrief(`card number in the ${one.resource}`, one.id),
    })),
    ...future.map((one) => ({
      future: [one],
      named: inBrief(`state of the future of the ${resourceOf(one)}`, one.id),
    })),
    ...[...byObject.values()].map((own) => ({ states: own, named: objectInBrief(own) })),
    ...dead.map((one) => ({
      dead: [one],
      named: inBrief("dead event", String(one.seq), `show ${one.seq}`),
    })),
  ];
}

/** The group `order.dunning` belongs to the resource `order`. */
const resourceOf = ({ group }: Pick<ToldState, "group">): string => groupNamed(group)?.resource.name ?? group;

const inBrief = (resource: string, id: string, shownBy = `list --resource ${id}`): ObjectInBrief => ({
  resource,
  id,
  orderNumber: null,
  money: null,
  command: tallyhook(`events ${shownBy}`),
});

function objectInBrief(states: readonly ToldState[]): ObjectInBrief {
  const [{ id, group }] = states as [ToldState];
  const columns = Object.assign({}, ...states.map((state) => state.columns)) as Record<string, unknown>;
  const amount = columns[groupNamed(group)?.resource.amount ?? ""];
  const { currency, order_number: orderNumber } = columns;
  const isShown = typeof amount === "number" || typeof amount === "string";
  return {
    ...inBrief(resourceOf({ group }), id),
    orderNumber: typeof orderNumber === "string" ? orderNumber : null,
    money: isShown ? `${amount} minor units${typeof currency === "string" ? ` of ${currency}` : ""}` : null,
  };
}

interface Limits {
  statement: string;
  lock: string;
}

/** Sets time limits until the transaction ends. Returns those that held before. */
async function setLimits(trx: Knex, { statement, lock }: Limits): Promise<Limits> {
  const { rows } = await trx.raw<{ rows: [Limits] }>(
    `with before as materialized (
       select current_setting('statement_timeout') as statement, current_setting('lock_timeout') as lock)
     select before.*, set_config('statement_timeout', ?, true), set_config('lock_timeout', ?, true) from before`,
    [statement, lock],
  );
  return rows[0];
}
