import type { Knex } from "knex";
import { failureCodes } from "../contract/decline-codes.ts";
import { orderStatuses } from "../contract/resources/orders.ts";
import { subscriptionStatuses } from "../contract/resources/subscriptions.ts";
import { currencyDigits } from "../platform/money.ts";
import { sqlArray } from "../platform/postgres/values.ts";
import { type AlertDesk, type FoundBy, wordingOf } from "./alert-context.ts";
import { writeStories } from "./raise-conditions.ts";
import { type MaskedObject, reportCardNumbers } from "./rules/card-numbers.ts";
import { chargebackStory, findChargebacks } from "./rules/chargebacks.ts";
import { findDeclinedOrders, mergedOrders } from "./rules/declined-orders.ts";
import { declineStory } from "./rules/declines.ts";
import { reportNovelties } from "./rules/unknown-values.ts";
import { newestAlerts } from "./store.ts";
import { type Story, isNews, planChange } from "./timeline.ts";

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
  desk: AlertDesk,
  states: readonly AssessedState[],
  foundBy: FoundBy,
): Promise<MissingFact[]> {
  if (states.length === 0) return [];
  const masked = states.flatMap(({ maskedCardNumbers }) => maskedCardNumbers ?? []);
  await reportCardNumbers(trx, desk, masked, foundBy);
  return assessTouched(trx, desk, touchedBy(states), foundBy);
}

/** The same of what a transaction touched, from what is known of it now. Needs a transaction; idempotent. */
export async function assessTouched(
  trx: Knex.Transaction,
  desk: AlertDesk,
  touched: Touched,
  foundBy: FoundBy,
): Promise<MissingFact[]> {
  await reportNovelties(trx, desk, touched.novelties, foundBy);
  const telling = [...touched.declinedOrders, ...touched.disputed, ...touched.unsettled];
  await takeTurns(trx, telling);
  // Only now: what another worker stored of them meanwhile has to be found.
  const stored = await storedSubjects(trx, touched);
  const orders = [...new Set([...touched.declinedOrders, ...stored.declinedOrders])].sort();
  const disputed = [...new Set([...touched.disputed, ...stored.disputed])].sort();
  if (orders.length + disputed.length === 0) return [];
  const isHeld = new Set(telling);
  await takeTurns(
    trx,
    [...orders, ...disputed].filter((id) => !isHeld.has(id)),
  );

  const wording = wordingOf(desk);
  const isAsked = new Set(orders);
  const declined = mergedOrders(await findDeclinedOrders(trx, orders));
  const chargebacks = await findChargebacks(trx, disputed);
  const declines = declined.flatMap((order) => {
    const story = declineStory(order, wording);
    return story === null ? [] : [{ order, story }];
  });
  // Other cycles came along to be merged: what is told of one is no news of another.
  const concerned = declines.filter(({ order }) => order.ids.some((id) => isAsked.has(id)));
  const stories = [
    ...concerned.map(({ story }) => story),
    ...chargebacks.map((chargeback) => chargebackStory(chargeback, wording)),
  ];
  await writeAll(trx, desk, stories, foundBy);
  return concerned.flatMap(({ order, story }): MissingFact[] => {
    // Asked for by what the order itself shows, and not again when the answer comes.
    const isSeen = order.ids.some((id) => touched.failedOrders.has(id));
    const isUnknown = story.facts["retry_is_unknown"] === true;
    return isSeen && isUnknown && order.subscriptionId !== null
      ? [{ resource: "subscription", id: order.subscriptionId }]
      : [];
  });
}

async function writeAll(
  trx: Knex.Transaction,
  desk: AlertDesk,
  stories: readonly Story[],
  foundBy: FoundBy,
): Promise<void> {
  const known = await newestAlerts(
    trx,
    stories.map(({ key }) => key),
  );
  const now = desk.serviceClock.now();
  const planned = stories
    .filter((story) => known.has(story.key) || isNews(story, foundBy, now))
    .map((story) => planChange(story, known.get(story.key) ?? null));
  await writeStories(trx, desk, planned, foundBy);
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
export interface Touched {
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
  novelties: Map<string, Set<string>>;
}

/** The same as JSON takes it: ids, and values that the interface does not name, cut as they are told. */
export interface TouchedIds extends Record<TouchedSet, string[]> {
  novelties: [kind: string, values: string[]][];
}

type TouchedSet = Exclude<keyof Touched, "novelties">;

const touchedSets = [
  "declinedOrders",
  "failedOrders",
  "disputed",
  "orders",
  "transactions",
  "subscriptions",
  "unsettled",
] as const satisfies readonly TouchedSet[];

/** Pure. */
export const idsOf = (touched: Touched): TouchedIds => ({
  ...(Object.fromEntries(touchedSets.map((name) => [name, [...touched[name]].sort()])) as Record<
    TouchedSet,
    string[]
  >),
  novelties: [...touched.novelties].map(([kind, values]) => [
    kind,
    [...values].map((value) => value.slice(0, 200)),
  ]),
});

/** Pure. */
export const touchedOf = (ids: TouchedIds): Touched => ({
  ...(Object.fromEntries(touchedSets.map((name) => [name, new Set(ids[name])])) as Record<
    TouchedSet,
    Set<string>
  >),
  novelties: new Map(ids.novelties.map(([kind, values]) => [kind, new Set(values)])),
});

/**
 * Sorts out what a transaction wrote, without a query: nearly all of it is of no interest to alerts, and this runs for
 * every event. Pure.
 */
export function touchedBy(states: Iterable<WrittenState>): Touched {
  const touched: Touched = {
    declinedOrders: new Set(),
    failedOrders: new Set(),
    disputed: new Set(),
    orders: new Set(),
    transactions: new Set(),
    subscriptions: new Set(),
    unsettled: new Set(),
    novelties: new Map(),
  };
  for (const state of states) noteState(touched, state);
  return touched;
}

function noteState(touched: Touched, { group, id, json, columns }: WrittenState): void {
  noteNovelties(touched, group, columns);
  switch (group) {
    case "order": {
      touched.orders.add(id);
      const status = columns["status"];
      if (status === "failed") {
        touched.declinedOrders.add(id);
        touched.failedOrders.add(id);
      } else if (isDisputed(status)) {
        touched.disputed.add(id);
      }
      return;
    }
    case "order.dunning":
      touched.declinedOrders.add(id);
      return;
    case "transaction":
    case "transaction.inline": {
      touched.transactions.add(id);
      // A status is no column of a transaction, and its content is parsed only where it may matter.
      if (!json.includes('"failed"') && !json.includes('"chargeback')) return;
      const { status, orderId } = saleOf(json);
      if (isDisputed(status)) touched.disputed.add(id);
      if (status !== "failed" || columns["type"] !== "sale" || orderId === null) return;
      touched.declinedOrders.add(orderId);
      return;
    }
    case "subscription":
    case "subscription.detail":
      touched.subscriptions.add(id);
      if (columns["status"] !== "active") touched.unsettled.add(id);
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

function noteNovelties(
  { novelties }: Touched,
  group: string,
  columns: WrittenState["columns"],
): void {
  const columnsOf = namedValues[group];
  if (columnsOf === undefined) return;
  for (const [column, values] of Object.entries(columnsOf)) {
    const value = columns[column];
    if (typeof value !== "string" || values.has(value)) continue;
    const kind = `${group}.${column}`;
    novelties.set(kind, (novelties.get(kind) ?? new Set()).add(value));
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
  { orders, transactions, subscriptions }: Touched,
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
