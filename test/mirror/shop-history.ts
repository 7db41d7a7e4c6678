import fc from "fast-check";
import type { Snapshot, Resource } from "../../src/core/mirror/snapshot.ts";
import { canonicalTimestamp } from "../../src/core/contract/timestamp.ts";

/** Stands in every id of a history, so that copies of it can live side by side. */
export const copyMark = "~@";

type Wire = Record<string, unknown>;
type WireTransaction = Wire & { id: string; type: string; status: string };
type WireOrder = Wire & { id: string; status: string; transactions: WireTransaction[] };

/** Something that reaches the mirror: an event, or the answer to a read. */
export type Delivery = Omit<Snapshot, "cause">;

export interface History {
  deliveries: Delivery[];
  /** Whether two states of one object say the same time: then only a read can tell which is the last. */
  hasTies: boolean;
  hasReads: boolean;
  /** Of everything that is hard: a tie, a thin object, a chargeback, a transaction seen inline and as itself. */
  isRich: boolean;
  /** The object as a read shows it when all is over. */
  lastRead(resource: Resource, id: string): Delivery;
  expected: Expected;
}

/** What the mirror must show in the end, by id. */
export interface Expected {
  orders: Record<string, Wire>;
  transactions: Record<string, Wire>;
  subscriptions: Record<string, Wire>;
  customers: Record<string, Wire>;
  chargebacks: Record<string, string>;
}

interface Choice {
  what: number;
  /** Mostly the first of the two orders, so that it gets far in its life. */
  which: number;
  pick: number;
  gapMs: number;
  isThin: boolean;
  /** The event lacks a field that others show, and is not thin. */
  isLacking: boolean;
}

/** Random histories of `count` deliveries; shrinks to fewer kinds of steps and no gaps. */
export const histories = (count: number): fc.Arbitrary<History> =>
  fc
    .record({
      choices: fc.array(
        fc.record({
          what: fc.nat(16),
          which: fc.constantFrom(0, 0, 0, 1),
          pick: fc.nat(5),
          gapMs: fc.constantFrom(2_500, 1, 700, 0, 0),
          isThin: fc.integer({ min: 0, max: 9 }).map((n) => n === 9),
          isLacking: fc.integer({ min: 0, max: 4 }).map((n) => n === 4),
        }),
        { minLength: count * 3, maxLength: count * 3 },
      ),
      entriesHaveTimes: fc.boolean(),
      eventsShowDetails: fc.boolean(),
    })
    .map(({ choices, ...style }) => tell(choices, style, count));

interface Style {
  entriesHaveTimes: boolean;
  eventsShowDetails: boolean;
}

const start = Date.UTC(2025, 2, 1, 12);

/** Lives through the choices until `count` deliveries have come of them. Pure. */
function tell(choices: readonly Choice[], style: Style, count: number): History {
  const shop = createShop(style);
  let at = start;
  for (const choice of choices) {
    if (shop.deliveries.length === count) break;
    at += choice.gapMs;
    shop.step(choice, at);
  }
  while (shop.deliveries.length < count) {
    at += 2_500;
    shop.step({ what: 12, which: 0, pick: 0, gapMs: 0, isThin: false, isLacking: false }, at);
  }
  return shop.end(at);
}

function createShop({ entriesHaveTimes, eventsShowDetails }: Style) {
  const deliveries: Delivery[] = [];
  const expected: Expected = {
    orders: {},
    transactions: {},
    subscriptions: {},
    customers: {},
    chargebacks: {},
  };
  const customerId = id("customer", 0);
  const orders = new Map<string, WireOrder>();
  const seenTimes = new Set<string>();
  /** The orders whose last state was shown without a field. */
  const lacking = new Set<string>();
  let customer: (Wire & { id: string }) | undefined;
  let subscription: (Wire & { id: string; status: string }) | undefined;
  let hasTies = false;
  let hasReads = false;
  let transactionCount = 0;

  const affected = (object: Wire, now: string): void => {
    const key = `${String(object["id"])}|${now}`;
    if (seenTimes.has(key)) hasTies = true;
    seenTimes.add(key);
    object["updated_at"] = now;
  };

  const entry = (transaction: WireTransaction): Wire => {
    const { updated_at, description: _full, processor_response: _also, ...rest } = transaction;
    const { order_id: _order, customer_id: _customer, ...shown } = rest;
    return entriesHaveTimes ? { ...shown, updated_at } : shown;
  };
  const orderBody = (order: WireOrder): Wire => ({
    ...order,
    transactions: order.transactions.map(entry),
  });
  const transactionBody = (transaction: WireTransaction): Wire => {
    const { attempt_count: _a, failure_code: _f, processor_transaction_id, ...rest } = transaction;
    return { ...rest, processor_response: { transaction_id: processor_transaction_id } };
  };

  /** A thin event shows the id alone and, as the spec has it for a failed order, what no read shows. */
  function event(
    resource: Resource,
    object: Wire,
    now: string,
    { isThin, isLacking }: Pick<Choice, "isThin" | "isLacking">,
    eventOnly: Wire = {},
  ): void {
    const body: Wire = isThin ? { id: object["id"], ...eventOnly } : { ...object, ...eventOnly };
    // Never null, so that only a read tells what it is now. No other group of an order follows from a read of it.
    if (isLacking && resource === "order") delete body["customer_id"];
    if (resource === "order" && !isThin) lacking[isLacking ? "add" : "delete"](String(object["id"]));
    deliveries.push({ resource, object: snapshot(body), fallbackUpdatedAt: now, observedAt: null });
  }
  function read(resource: Resource, object: Wire, now: string): void {
    hasReads = true;
    deliveries.push(readOf(resource, object, Date.parse(now)));
  }

  function startOrder(orderId: string, now: string, choice: Choice): void {
    const order: WireOrder = {
      id: orderId,
      order_number: "AB12CD34",
      customer_id: customerId,
      status: "pending",
      items: [{ product_id: "p1", quantity: 1 }],
      subtotal: 1_000,
      discount_amount: 0,
      total: 1_000,
      currency: "usd",
      description: null,
      payment_method: { id: "pm1", card_brand: "visa", card_last_four: "4242" },
      transactions: [],
      metadata: { note: 'a "quoted" ü' },
      created_at: now,
    };
    orders.set(orderId, order);
    affected(order, now);
    event("order", orderBody(order), now, choice);
  }

  function addTransaction(order: WireOrder, now: string, fields: Wire): WireTransaction {
    const attempts = order.transactions.filter(({ type }) => type === fields["type"]).length + 1;
    const transaction = {
      id: id("transaction", transactionCount++),
      type: "sale",
      status: "succeeded",
      amount: 1_000,
      currency: "usd",
      customer_id: customerId,
      order_id: order.id,
      description: null,
      processor_transaction_id: `p${transactionCount}`,
      attempt_count: attempts,
      failure_code: null,
      failure_reason: null,
      created_at: now,
      ...fields,
    } as WireTransaction;
    affected(transaction, now);
    order.transactions.push(transaction);
    return transaction;
  }

  const captured = (order: WireOrder) =>
    order.transactions.findLast(
      ({ type, status }) => type === "sale" && (status === "succeeded" || status === "chargeback"),
    );

  function moveOrder(order: WireOrder, now: string, choice: Choice): void {
    const { pick } = choice;
    const isOdd = pick % 2 === 1;
    let dunning: Wire = {};
    switch (order.status) {
      case "pending":
      case "failed":
        if (isOdd) {
          order.status = "succeeded";
          addTransaction(order, now, { type: "sale" });
        } else {
          order.status = "failed";
          order["failure_code"] = "insufficient_funds";
          const failed = { type: "sale", status: "failed", failure_code: "insufficient_funds" };
          const { attempt_count } = addTransaction(order, now, failed);
          dunning = { attempt_count, next_retry_at: pick > 3 ? null : later(now) };
        }
        break;
      case "chargeback":
        order.status = isOdd ? "chargeback_accepted" : "chargeback_dismissed";
        if (!isOdd) moveSale(order, "succeeded", now);
        break;
      case "succeeded":
      case "partially_refunded":
        if (isOdd) {
          order.status = pick > 3 ? "refunded" : "partially_refunded";
          addTransaction(order, now, { type: "refund", amount: 100 });
          break;
        }
        openChargeback(order, now);
        break;
      default:
        // No status is terminal for the mirror.
        if (isOdd) openChargeback(order, now);
        else order.status = "refunded";
    }
    affected(order, now);
    event("order", orderBody(order), now, choice, dunning);
    if ("attempt_count" in dunning) {
      expected.orders[order.id] = { ...expected.orders[order.id], ...dunning };
    }
  }

  function openChargeback(order: WireOrder, now: string): void {
    order.status = "chargeback";
    moveSale(order, "chargeback", now);
  }

  function moveSale(order: WireOrder, status: string, now: string): void {
    const sale = captured(order);
    if (sale === undefined || sale.status === status) return;
    sale.status = status;
    affected(sale, now);
  }

  /** A sale that changes while its order keeps its time. Without a time of its own nothing would tell when. */
  function moveSaleAlone(order: WireOrder, now: string, choice: Choice): void {
    const sale = captured(order);
    if (sale === undefined || !entriesHaveTimes) return;
    // Back in its life: the rank of the status alone would be wrong.
    moveSale(order, sale.status === "succeeded" ? "in_progress" : "succeeded", now);
    // The order keeps its time, so a state that lacks more or less than the one before would tie with it.
    event("order", orderBody(order), now, { ...choice, isLacking: lacking.has(order.id) });
  }

  function moveSubscription(now: string, choice: Choice): void {
    const { pick } = choice;
    if (subscription === undefined) {
      subscription = {
        id: id("subscription", 0),
        customer_id: customerId,
        plan: { id: "plan1", name: "Monthly", amount: 900, currency: "usd" },
        status: "active",
        billing_cycle: { interval: "month", interval_count: 1 },
        current_billing_cycle: 1,
        total_billing_cycles: 0,
        created_at: now,
        failure_reason: null,
        attempt_count: 0,
        next_retry_at: null,
      };
    } else if (pick < 2) {
      const attempts = Number(subscription["attempt_count"]) + 1;
      Object.assign(subscription, { status: "past_due", failure_reason: "declined" });
      Object.assign(subscription, { attempt_count: attempts, next_retry_at: later(now) });
    } else if (pick < 5) {
      const cycle = Number(subscription["current_billing_cycle"]) + 1;
      Object.assign(subscription, { status: "active", current_billing_cycle: cycle });
      Object.assign(subscription, { failure_reason: null, attempt_count: 0, next_retry_at: null });
    } else {
      Object.assign(subscription, { status: "canceled", canceled_at: now });
    }
    affected(subscription, now);
    event("subscription", eventSubscription(subscription), now, choice);
  }

  const eventSubscription = (body: Wire): Wire => {
    if (eventsShowDetails) return body;
    const { failure_reason: _r, attempt_count: _a, next_retry_at: _n, ...rest } = body;
    return rest;
  };

  function moveCustomer(now: string, choice: Choice): void {
    const { pick } = choice;
    const first = { id: customerId, email: "a@example.com", deleted: false, created_at: now };
    customer ??= first;
    customer["first_name"] = `Name ${deliveries.length}`;
    if (pick === 5) customer["deleted"] = true;
    affected(customer, now);
    event("customer", customer, now, choice);
  }

  function lastRead(resource: "order" | "transaction" | "subscription" | "customer", wanted: string): Delivery {
    const transactions = [...orders.values()].flatMap((order) => order.transactions);
    const found = {
      order: () => orders.get(wanted),
      transaction: () => transactions.find((known) => known.id === wanted),
      subscription: () => subscription,
      customer: () => customer,
    }[resource]();
    if (found === undefined) throw new Error(`nobody told of the ${resource} ${wanted}`);
    const body =
      resource === "order"
        ? orderBody(found as WireOrder)
        : resource === "transaction"
          ? transactionBody(found as WireTransaction)
          : found;
    return readOf(resource, body, endsAt + 10_000);
  }
  let endsAt = start;

  return {
    deliveries,
    step(choice: Choice, at: number): void {
      const now = new Date(at).toISOString();
      const orderId = id("order", choice.which);
      const order = orders.get(orderId);
      const transaction = order?.transactions.at(choice.pick > 2 ? -1 : 0);
      if (choice.what <= 4) {
        if (order === undefined) startOrder(orderId, now, choice);
        else moveOrder(order, now, choice);
      } else if (choice.what === 5 && order !== undefined) {
        read("order", orderBody(order), now);
      } else if (choice.what === 6 && order !== undefined) {
        // As a list without expansions shows it.
        const { items: _items, transactions: _transactions, ...listed } = orderBody(order);
        read("order", listed, now);
      } else if (choice.what >= 7 && choice.what <= 9 && transaction !== undefined) {
        read("transaction", transactionBody(transaction), now);
      } else if (choice.what >= 8 && choice.what <= 10) {
        moveSubscription(now, choice);
      } else if (choice.what === 11 && subscription !== undefined) {
        read("subscription", subscription, now);
      } else if (choice.what === 12) {
        moveCustomer(now, choice);
      } else if (choice.what === 13 && customer !== undefined) {
        read("customer", customer, now);
      } else if (choice.what >= 14 && order !== undefined) {
        moveSaleAlone(order, now, choice);
      }
    },
    end(at: number): History {
      endsAt = at;
      for (const order of orders.values()) {
        const { id: orderId, status, total, currency, failure_code = null } = order;
        expected.orders[orderId] = {
          attempt_count: null,
          next_retry_at: null,
          ...expected.orders[orderId],
          status,
          total: String(total),
          currency,
          failure_code,
        };
        for (const known of order.transactions) {
          expected.transactions[known.id] = {
            type: known.type,
            status: known.status,
            amount: String(known["amount"]),
            order_id: orderId,
            failure_code: known["failure_code"],
            processor_transaction_id: known["processor_transaction_id"],
            attempt_count: known["attempt_count"],
          };
        }
        if (status.startsWith("chargeback")) {
          const state = status === "chargeback" ? "opened" : status.slice("chargeback_".length);
          expected.chargebacks[orderId] = state;
        }
      }
      if (subscription !== undefined) {
        const { id: subscriptionId, status, current_billing_cycle } = subscription;
        expected.subscriptions[subscriptionId] = { status, current_billing_cycle };
      }
      if (customer !== undefined) {
        const { email, first_name, deleted } = customer;
        expected.customers[customer.id] = { email, first_name, deleted };
      }
      const shows = (test: (object: Wire, resource: Resource) => boolean) =>
        deliveries.some(({ object, resource }) => test(object, resource));
      const isRich =
        hasTies &&
        shows((object) => !Object.hasOwn(object, "created_at")) &&
        shows(({ status }) => typeof status === "string" && status.startsWith("chargeback")) &&
        shows((_, resource) => resource === "transaction");
      return { deliveries, hasTies, hasReads, isRich, lastRead, expected };
    },
  };
}

const id = (kind: string, n: number): string => `${kind}-${n}${copyMark}`;

const later = (iso: string): string => new Date(Date.parse(iso) + 86_400_000).toISOString();

const snapshot = (object: Wire): Wire => structuredClone(object);

/** `Date` has whole seconds. */
function readOf(resource: Resource, object: Wire, atMs: number): Delivery {
  const date = new Date(Math.floor(atMs / 1_000) * 1_000).toISOString();
  const observedAt = canonicalTimestamp(date);
  return { resource, object: snapshot(object), fallbackUpdatedAt: null, observedAt };
}
