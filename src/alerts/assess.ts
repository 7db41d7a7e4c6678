import type { Knex } from "knex";
import { failureCodes } from "../contract/decline-codes.ts";
import { orderStatuses } from "../contract/resources/orders.ts";
import { subscriptionStatuses } from "../contract/resources/subscriptions.ts";
import { currencyDigits } from "../platform/money.ts";
import { sqlArray } from "../platform/postgres/values.ts";
import { type AlertContext, type FoundBy, wordingOf } from "./alert-context.ts";
import { writeTimelines } from "./raise-conditions.ts";
import { type MaskedObject, reportCardNumbers } from "./rules/card-numbers.ts";
import { chargebackTimeline, findChargebacks } from "./rules/chargebacks.ts";
import { findDeclinedOrders, mergedOrders } from "./rules/declined-orders.ts";
import { declineTimeline } from "./rules/declines.ts";
import { reportUnknownValues } from "./rules/unknown-values.ts";
import { newestAlerts } from "./store.ts";
import { type Timeline, isNews, planChange } from "./timeline.ts";

/** What a transaction should order to be read, since alerts lack it. */
export interface MissingFact {
  resource: "subscription";
  id: string;
}

export type AssessedState = WrittenState & { maskedCardNumbers: MaskedObject | null };

/**
 * Holds the alerts of everything that was written against what is known of it now, and writes the difference: alerts,
 * their histories, and what is to be sent. What is stored in the end depends on the set of known states alone, not on
 * their order. Needs the transaction that wrote the states, after it wrote them; called through `withIsolatedAlerts`, so
 * that its failure is not theirs. Idempotent. Costs a look at the states and one small query where nothing concerns an
 * alert.
 */
export async function assess(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  states: readonly AssessedState[],
  foundBy: FoundBy,
): Promise<MissingFact[]> {
  if (states.length === 0) return [];
  const masked = states.flatMap(({ maskedCardNumbers }) => maskedCardNumbers ?? []);
  await reportCardNumbers(trx, alertContext, masked, foundBy);
  return assessAffected(trx, alertContext, affectedBy(states), foundBy);
}

/** The same of what a transaction touched, from what is known of it now. Needs a transaction; idempotent. */
export async function assessAffected(
  trx: Knex.Transaction,
  alertContext: AlertContext,
  affected: Affected,
  foundBy: FoundBy,
): Promise<MissingFact[]> {
  await reportUnknownValues(trx, alertContext, affected.unknownValues, foundBy);
  const telling = [...affected.declinedOrders, ...affected.disputed, ...affected.unsettled];
  await takeTurns(trx, telling);
  // Only now: what another worker stored of them meanwhile has to be found.
  const stored = await storedSubjects(trx, affected);
  const orders = [...new Set([...affected.declinedOrders, ...stored.declinedOrders])].sort();
  const disputed = [...new Set([...affected.disputed, ...stored.disputed])].sort();
  if (orders.length + disputed.length === 0) return [];
  const isHeld = new Set(telling);
  await takeTurns(
    trx,
    [...orders, ...disputed].filter((id) => !isHeld.has(id)),
  );

  const wording = wordingOf(alertContext);
  const isAsked = new Set(orders);
  const declined = mergedOrders(await findDeclinedOrders(trx, orders));
  const chargebacks = await findChargebacks(trx, disputed);
  const declines = declined.flatMap((order) => {
    const timeline = declineTimeline(order, wording);
    return timeline === null ? [] : [{ order, timeline }];
  });
  // Other cycles came along to be merged: what is told of one is no news of another.
  const concerned = declines.filter(({ order }) => order.ids.some((id) => isAsked.has(id)));
  const stories = [
    ...concerned.map(({ timeline }) => timeline),
    ...chargebacks.map((chargeback) => chargebackTimeline(chargeback, wording)),
  ];
  await writeAll(trx, alertContext, stories, foundBy);
  return concerned.flatMap(({ order, timeline }): MissingFact[] => {
    // Asked for by what the order itself shows, and not again when the answer comes.
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
  stories: readonly Timeline[],
  foundBy: FoundBy,
): Promise<void> {
  const known = await newestAlerts(
    trx,
    stories.map(({ key }) => key),
  );
  const now = alertContext.serviceClock.now();
  const planned = stories
    .filter((timeline) => known.has(timeline.key) || isNews(timeline, foundBy, now))
    .map((timeline) => planChange(timeline, known.get(timeline.key) ?? null));
  await writeTimelines(trx, alertContext, planned, foundBy);
}

/**
 * Whoever assesses the same order, or the same subscription, at the same time waits, and then sees what the other wrote.
 * An order is locked by its own id too: the other may not know its subscription yet. Some thousand locks for all
 * subjects: a batch needs no more of them. One statement.
 */
async function takeTurns(trx: Knex.Transaction, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await trx.raw(
    `select pg_advisory_xact_lock(7255, n) from (
       select distinct hashtext(subject.id) & 1023 as n
       from unnest(?::text[]) as asked(id)
       left join mirror.orders o on o.id = asked.id
       left join mirror.transactions t on t.id = asked.id
       left join mirror.orders paid on paid.id = t.order_id
       cross join lateral (
         values (asked.id), (o.subscription_id), (t.order_id), (paid.subscription_id)) as subject(id)
       where subject.id is not null order by 1 offset 0) turns`,
    [sqlArray(ids)],
  );
}

/** A state that was just written, as far as alerts look at it. */
export interface WrittenState {
  group: string;
  id: string;
  /** Its content. */
  json: string;
  columns: Readonly<Record<string, unknown>>;
}

/** What a transaction of the mirror touched that an alert may be about. */
export interface Affected {
  /** Orders that show a decline: there is a story to tell, whether or not one was told before. */
  declinedOrders: Set<string>;
  /** Of those, the ones whose own state was seen, so that what it lacks can be asked for. */
  failedOrders: Set<string>;
  /** Orders and transactions that show a chargeback. */
  disputed: Set<string>;
  /** All ids: only where an alert about them is stored already are they looked at. */
  orders: Set<string>;
  transactions: Set<string>;
  subscriptions: Set<string>;
  /** Of those, the ones that may end or change a story of dunning. */
  unsettled: Set<string>;
  /** Values that the interface does not name, as `order.status` and the value. */
  unknownValues: Map<string, Set<string>>;
}

/** The same as JSON takes it: ids, and values that the interface does not name, cut as they are told. */
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

/** Pure. */
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

/** Pure. */
export const affectedOf = (ids: AffectedIds): Affected => ({
  ...(Object.fromEntries(affectedSets.map((name) => [name, new Set(ids[name])])) as Record<
    AffectedSet,
    Set<string>
  >),
  unknownValues: new Map(ids.unknownValues.map(([kind, values]) => [kind, new Set(values)])),
});

/**
 * Sorts out what a transaction wrote, without a query: nearly all of it is of no interest to alerts, and this runs for
 * every event. Pure.
 */
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
      } else if (isDisputed(status)) {
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
      // A status is no column of a transaction, and its content is parsed only where it may matter.
      if (!json.includes('"failed"') && !json.includes('"chargeback')) return;
      const { status, orderId } = saleOf(json);
      if (isDisputed(status)) affected.disputed.add(id);
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

/** As the service may write them: of another it is not known what a minor unit is. */
const currencies = new Set(
  [...currencyDigits.keys()].flatMap((code) => [code, code.toUpperCase()]),
);

/** What the interface names of each column (spec, Resources and Errors). */
const namedValues: Readonly<Record<string, Readonly<Record<string, ReadonlySet<string>>>>> = {
  order: {
    status: new Set(orderStatuses),
    failure_code: new Set(failureCodes),
    currency: currencies,
  },
  subscription: { status: new Set(subscriptionStatuses), currency: currencies },
  transaction: { currency: currencies },
};

function noteUnknownValues(
  { unknownValues }: Affected,
  group: string,
  columns: WrittenState["columns"],
): void {
  const columnsOf = namedValues[group];
  if (columnsOf === undefined) return;
  for (const [column, values] of Object.entries(columnsOf)) {
    const value = columns[column];
    if (typeof value !== "string" || values.has(value)) continue;
    const kind = `${group}.${column}`;
    unknownValues.set(kind, (unknownValues.get(kind) ?? new Set()).add(value));
  }
}

const isDisputed = (status: unknown): boolean =>
  typeof status === "string" && status.startsWith("chargeback");

function saleOf(json: string): { status: unknown; orderId: string | null } {
  const { status, order_id: orderId } = JSON.parse(json) as {
    status?: unknown;
    order_id?: unknown;
  };
  return { status, orderId: typeof orderId === "string" ? orderId : null };
}

/** What stored alerts say they are about. */
export interface StoredSubjects {
  declinedOrders: string[];
  disputed: string[];
}

/**
 * The orders and chargebacks among what was touched of which an alert was told before. One statement over the indexes of
 * a small table: every batch asks it.
 */
async function storedSubjects(
  db: Knex,
  { orders, transactions, subscriptions }: Affected,
): Promise<StoredSubjects> {
  if (orders.size + transactions.size + subscriptions.size === 0) {
    return { declinedOrders: [], disputed: [] };
  }
  const { rows } = await db
    .raw<{ rows: { is_chargeback: boolean; id: string | null }[] }>(
      // One scan of each index for all ids of a batch: a join would look up each of them.
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
