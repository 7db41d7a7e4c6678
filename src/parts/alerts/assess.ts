import type { Knex } from "knex";
import { isChargebackStatus } from "../../core/contract/resources/orders.ts";
import type { MissingFact, ToldState, WrittenState } from "../../core/mirror/listener.ts";
import { mirrorResources } from "../../core/mirror/resources.ts";
import type { Known } from "../../core/mirror/resources/resource.ts";
import { knownUntil } from "../../core/mirror/restores.ts";
import { sqlArray } from "../../platform/postgres/values.ts";
import { type AlertContext, type FoundBy, wordingOf } from "./alert-context.ts";
import { writeTimelines } from "./raise-conditions.ts";
import { reportCardNumbers } from "./rules/card-numbers.ts";
import { findOpenings } from "../../core/mirror/chargebacks.ts";
import { chargebackTimeline } from "./rules/chargebacks.ts";
import { findDeclinedOrders, mergedOrders } from "../../core/mirror/dunning/declined-orders.ts";
import { declineTimelines } from "./rules/declines.ts";
import { reportUnknownValues } from "./rules/unknown-values.ts";
import { nameOf, storedAlerts } from "./store.ts";
import { type FactTimeline, isNews, lastTransition, planChange } from "./timeline.ts";

/**
 * Assesses everything that was written by the present knowledge, and writes the difference: alerts, their histories and
 * the messages to send. The result depends only on the set of known states, not on their order. Needs the transaction
 * that wrote the states, after the writing. Called through `withIsolatedAlerts`, so that a failure here does not fail
 * that transaction. Idempotent. Without an effect on alerts it costs a pass over the states and one small query.
 */
export async function assess(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  states: readonly ToldState[],
  foundBy: FoundBy,
): Promise<MissingFact[]> {
  if (states.length === 0) return [];
  const masked = states.flatMap(({ maskedCardNumbers }) => maskedCardNumbers ?? []);
  await reportCardNumbers(trx, alertContext, masked, foundBy);
  return assessAffected(trx, alertContext, affectedBy(states), foundBy);
}

/** Assesses the affected objects of a transaction by the present knowledge. Needs a transaction; idempotent. */
export async function assessAffected(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  affected: Affected,
  foundBy: FoundBy,
): Promise<MissingFact[]> {
  await reportUnknownValues(trx, alertContext, affected.unknownValues, foundBy);
  const known = [...affected.declinedOrders, ...affected.disputed, ...affected.unsettled];
  const stored = await lockSubjects(trx, affected, known);
  const orders = [...new Set([...affected.declinedOrders, ...stored.declinedOrders])].sort();
  const disputed = [...new Set([...affected.disputed, ...stored.disputed])].sort();
  if (orders.length + disputed.length === 0) return [];

  const wording = wordingOf(alertContext);
  const isAssessed = new Set(orders);
  const declined = mergedOrders(await findDeclinedOrders(trx, orders));
  const openings = await findOpenings(trx, disputed);
  // Other cycles were read for merging only. A change to one cycle is no news about another.
  const changed = declined.filter(({ ids }) => ids.some((id) => isAssessed.has(id)));
  const concerned = changed.flatMap((order) =>
    declineTimelines(order, wording).map((timeline) => ({ order, timeline })),
  );
  const timelines = [
    ...concerned.map(({ timeline }) => timeline),
    ...openings.map((opening) => chargebackTimeline(opening, wording)),
  ];
  await writeAll(trx, alertContext, timelines, foundBy);
  return concerned.flatMap(({ order, timeline }): MissingFact[] => {
    // Refetch only if the order itself was written. The refetched subscription must not order another refetch.
    const isSeen = order.ids.some((id) => affected.failedOrders.has(id));
    const isUnknown = timeline.facts["retry_is_unknown"] === true;
    return isSeen && isUnknown && order.subscriptionId !== null
      ? [{ resource: "subscription", id: order.subscriptionId }]
      : [];
  });
}

async function writeAll(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  timelines: readonly FactTimeline[],
  foundBy: FoundBy,
): Promise<void> {
  const known = await storedAlerts(trx, timelines);
  const now = alertContext.serviceClock.now();
  const toldUntil = timelines.length === 0 ? null : await knownUntil(trx);
  const planned = timelines
    .filter((timeline) => known.has(nameOf(timeline)) || isNews(timeline, foundBy, now))
    .map((timeline) => planChange(timeline, known.get(nameOf(timeline)) ?? null, timeline.occurrence))
    .map((change) => ({
      ...change,
      isTold: toldUntil !== null && lastTransition(change.timeline).at <= toldUntil,
    }));
  await writeTimelines(trx, alertContext, planned, foundBy);
}

/**
 * Locks the known subjects and those that have alerts, all of them in one order, and returns the latter. They are read
 * once more after locking, so that alerts which another worker has just stored are found. Where these are of further
 * subjects, everything is unlocked and locked again with them.
 */
async function lockSubjects(
  trx: Knex.Transaction,
  affected: Affected,
  known: readonly string[],
): Promise<StoredSubjects> {
  let stored = await storedSubjects(trx, affected);
  const subjects = new Set(known);
  for (;;) {
    for (const id of idsOfStored(stored)) subjects.add(id);
    if (subjects.size === 0) return stored;
    let isCovered = false;
    // A savepoint, whose rollback unlocks.
    await trx.transaction(
      async (attempt) => {
        await lockInOrder(attempt, [...subjects]);
        stored = await storedSubjects(attempt, affected);
        isCovered = idsOfStored(stored).every((id) => subjects.has(id));
        if (!isCovered) await attempt.rollback();
      },
      { doNotRejectOnRollback: true },
    );
    if (isCovered) return stored;
  }
}

const idsOfStored = ({ declinedOrders, disputed }: StoredSubjects): string[] => [...declinedOrders, ...disputed];

/**
 * Locks the orders and subscriptions, so that workers that assess the same one take turns and each sees the other's
 * writes. An order is also locked by its own id, since the other worker may not know its subscription yet. All subjects
 * share 1,024 locks, which bounds the locks of a batch. One statement.
 */
async function lockInOrder(trx: Knex.Transaction, ids: readonly string[]): Promise<void> {
  const list = sqlArray(ids);
  await trx.raw(
    `select pg_advisory_xact_lock(7255, n) from (
       select distinct hashtext(subject.id) & 1023 as n
       from (
         select unnest(?::text[]) as id
         union all
         select unnest(array[o.id, o.subscription_id]) from mirror.orders o where o.id = any(?::text[])
         union all
         select unnest(array[t.order_id, (select o.subscription_id from mirror.orders o where o.id = t.order_id)])
         from mirror.transactions t where t.id = any(?::text[])
       ) subject
       where subject.id is not null order by 1 offset 0) turns`,
    [list, list, list],
  );
}

/** The objects that a transaction of the mirror changed and that an alert may be about. */
export interface Affected {
  /** Orders that show a decline: they have a timeline, whether or not an alert exists. */
  declinedOrders: Set<string>;
  /** The declined orders whose own state was written, so that a refetch may be ordered for missing fields. */
  failedOrders: Set<string>;
  /** Orders and transactions that show a chargeback. */
  disputed: Set<string>;
  /** Everything written, by id. These are assessed only where an alert about them is stored already. */
  orders: Set<string>;
  transactions: Set<string>;
  subscriptions: Set<string>;
  /** The subscriptions that may end or change a dunning timeline. */
  unsettled: Set<string>;
  /** Values that the interface does not name: `order.status` and the like, with the values. */
  unknownValues: Map<string, Set<string>>;
}

/** The affected objects as JSON. Unknown values are cut to the length that an alert shows. */
export interface AffectedIds extends Record<AffectedSet, string[]> {
  unknownValues: [kind: string, values: string[]][];
}

type AffectedSet = Exclude<keyof Affected, "unknownValues">;

const affectedSets = [
  "declinedOrders",
  "failedOrders",
  "disputed",
  "orders",
  "transactions",
  "subscriptions",
  "unsettled",
] as const satisfies readonly AffectedSet[];

export const idsOf = (affected: Affected): AffectedIds => ({
  ...(Object.fromEntries(affectedSets.map((name) => [name, [...affected[name]].sort()])) as Record<
    AffectedSet,
    string[]
  >),
  unknownValues: [...affected.unknownValues].map(([kind, values]) => [
    kind,
    [...values].map((value) => value.slice(0, 200)),
  ]),
});

export const affectedOf = (ids: AffectedIds): Affected => ({
  ...(Object.fromEntries(affectedSets.map((name) => [name, new Set(ids[name])])) as Record<AffectedSet, Set<string>>),
  unknownValues: new Map(ids.unknownValues.map(([kind, values]) => [kind, new Set(values)])),
});

/** Collects the affected objects without a query. It runs for every event, and nearly all events concern no alert. */
export function affectedBy(states: Iterable<WrittenState>): Affected {
  const affected: Affected = {
    declinedOrders: new Set(),
    failedOrders: new Set(),
    disputed: new Set(),
    orders: new Set(),
    transactions: new Set(),
    subscriptions: new Set(),
    unsettled: new Set(),
    unknownValues: new Map(),
  };
  for (const state of states) noteState(affected, state);
  return affected;
}

function noteState(affected: Affected, { group, id, json, columns }: WrittenState): void {
  noteUnknownValues(affected, group, columns);
  switch (group) {
    case "order": {
      affected.orders.add(id);
      const status = columns["status"];
      if (status === "failed") {
        affected.declinedOrders.add(id);
        affected.failedOrders.add(id);
      } else if (isChargebackStatus(status)) {
        affected.disputed.add(id);
      }
      return;
    }
    case "order.dunning":
      affected.declinedOrders.add(id);
      return;
    case "transaction":
    case "transaction.inline": {
      affected.transactions.add(id);
      // The status is not a column of a transaction. The content is parsed only where it may matter.
      if (!json.includes('"failed"') && !json.includes('"chargeback')) return;
      const { status, orderId } = saleOf(json);
      if (isChargebackStatus(status)) affected.disputed.add(id);
      if (status !== "failed" || columns["type"] !== "sale" || orderId === null) return;
      affected.declinedOrders.add(orderId);
      return;
    }
    case "subscription":
    case "subscription.detail":
      affected.subscriptions.add(id);
      if (columns["status"] !== "active") affected.unsettled.add(id);
  }
}

/** Keyed by core group, which has the name of its resource. */
const knownCodes = new Map<string, Known["codes"]>(mirrorResources.map(({ name, known }) => [name, known.codes]));

function noteUnknownValues({ unknownValues }: Affected, group: string, columns: WrittenState["columns"]): void {
  const codes = knownCodes.get(group);
  if (codes === undefined) return;
  for (const [column, values] of Object.entries(codes)) {
    const value = columns[column];
    if (typeof value !== "string" || values.has(value)) continue;
    const kind = `${group}.${column}`;
    unknownValues.set(kind, (unknownValues.get(kind) ?? new Set()).add(value));
  }
}

function saleOf(json: string): { status: unknown; orderId: string | null } {
  const { status, order_id: orderId } = JSON.parse(json) as {
    status?: unknown;
    order_id?: unknown;
  };
  return { status, orderId: typeof orderId === "string" ? orderId : null };
}

/** The objects that stored alerts are about. */
export interface StoredSubjects {
  declinedOrders: string[];
  disputed: string[];
}

/**
 * The declined orders and chargebacks among the affected objects that already have an alert. One statement over the
 * indexes of a small table, since every batch runs it.
 */
async function storedSubjects(db: Knex, { orders, transactions, subscriptions }: Affected): Promise<StoredSubjects> {
  if (orders.size + transactions.size + subscriptions.size === 0) {
    return { declinedOrders: [], disputed: [] };
  }
  const { rows } = await db
    .raw<{ rows: { is_chargeback: boolean; id: string | null }[] }>(
      // One scan of each index covers all ids of a batch. A join would look up each id.
      `select distinct a.rule = 'chargeback' as is_chargeback, coalesce(a.order_id, a.transaction_id) as id
       from alerts.alerts a
       where a.order_id = any(?::text[]) or a.transaction_id = any(?::text[]) or a.subscription_id = any(?::text[])`,
      [sqlArray([...orders]), sqlArray([...transactions]), sqlArray([...subscriptions])],
    )
    .options({ name: "alerts-subjects" });
  return {
    declinedOrders: rows.flatMap(({ is_chargeback, id }) => (is_chargeback ? [] : (id ?? []))),
    disputed: rows.flatMap(({ is_chargeback, id }) => (is_chargeback ? (id ?? []) : [])),
  };
}
