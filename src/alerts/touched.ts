import { currencyDigits } from "../platform/money.ts";
import { failureCodes } from "../service/resources/failure-codes.ts";
import { orderStatuses } from "../service/resources/order.ts";
import { subscriptionStatuses } from "../service/resources/subscription.ts";

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
