import type { Knex } from "knex";
import { applySnapshots } from "../../../src/core/mirror/write/apply.ts";
import type { Snapshot, Resource } from "../../../src/core/mirror/snapshot.ts";
import { at, seen, shown } from "../../mirror/samples.ts";

type Wire = Record<string, unknown>;
const days = 86_400;

/** The moment of the checks: ten days after the first order, 2025-03-11. */
export const now = new Date(at(10 * days));

const card = { id: "card-1", card_last_four: "1111", card_brand: "visa" };

let numbers = 0;

/** A paid order over 1000, without what it carries inline. */
export const order = (id: string, fields: Wire = {}): Wire => ({
  id,
  order_number: `N${String(++numbers).padStart(7, "0")}`,
  customer_id: "customer-1",
  status: "succeeded",
  subtotal: 1_000,
  discount_amount: 0,
  total: 1_000,
  currency: "usd",
  payment_method: card,
  created_at: at(0),
  updated_at: at(1),
  ...fields,
});

/** An approved sale over 1000. */
export const sale = (orderId: string | null, fields: Wire = {}): Wire => ({
  id: `sale-of-${orderId}`,
  type: "sale",
  status: "succeeded",
  amount: 1_000,
  currency: "usd",
  customer_id: "customer-1",
  order_id: orderId,
  payment_method: card,
  created_at: at(1),
  updated_at: at(1),
  ...fields,
});

export const refund = (orderId: string, amount: number, fields: Wire = {}): Wire =>
  sale(orderId, {
    id: `refund-of-${orderId}`,
    type: "refund",
    amount,
    created_at: at(60),
    updated_at: at(60),
    ...fields,
  });

/** A paid, active subscription: one month from the first order on, 1000 a cycle. */
export const subscription = (id: string, fields: Wire = {}): Wire => ({
  id,
  customer_id: "customer-1",
  plan: { id: "plan-1", name: "Monthly", amount: 1_000, currency: "usd" },
  status: "active",
  billing_cycle: { interval: "month", interval_count: 1, anchor_day: 1 },
  payment_method: card,
  current_period_start: at(0),
  current_period_end: at(31 * days),
  current_billing_cycle: 1,
  total_billing_cycles: 0,
  next_billing_date: at(31 * days),
  start_date: at(0),
  created_at: at(0),
  updated_at: at(2),
  ...fields,
});

export const customer = (id: string, fields: Wire = {}): Wire => ({
  id,
  email: `${id}@example.com`,
  created_at: at(-60),
  updated_at: at(-60),
  ...fields,
});

export const couponOf = (fields: Wire): Wire => ({ id: "coupon-1", code: "TEN", ...fields });

/** What the service's lists show. */
export const listed = (resource: Resource, object: Wire): Snapshot => seen(resource, object, 9 * days);

/** What an event showed: a state of the past. */
export const told = (resource: Resource, object: Wire): Snapshot => shown(resource, object);

/** An order and its sale, as the lists show them. */
export const paidOrder = (id: string, fields: Wire = {}, saleFields: Wire = {}): Snapshot[] => [
  listed("order", order(id, fields)),
  listed("transaction", sale(id, saleFields)),
];

export const cycle = (subscriptionId: string, n: number | null, fields: Wire = {}, saleFields: Wire = {}): Snapshot[] =>
  paidOrder(
    `${subscriptionId}-${n}`,
    { subscription_id: subscriptionId, subscription_cycle: n, ...fields },
    saleFields,
  );

const declined = { status: "failed", failure_code: "insufficient_funds" };

/** A cycle that was declined. */
export const declinedCycle = (subscriptionId: string, n: number | null, fields: Wire = {}) =>
  cycle(subscriptionId, n, { ...declined, ...fields }, { status: "failed" });

/** One of everything that may be, and every identity holds. */
export function wholeMirror(): Snapshot[] {
  return [
    listed("customer", customer("customer-1")),
    ...paidOrder("plain"),
    ...paidOrder(
      "fixed",
      {
        discount_amount: 300,
        total: 700,
        applied_coupon: couponOf({ amount: 300 }),
      },
      { amount: 700 },
    ),
    ...paidOrder(
      "percent",
      {
        subtotal: 333,
        discount_amount: 41,
        total: 292,
        applied_coupon: couponOf({
          percentage: 12.5,
          max_discount_amount: 900,
          product_scope: "all",
        }),
      },
      { amount: 292 },
    ),
    listed("order", order("free", { total: 0, subtotal: 0 })),
    ...paidOrder("unsettled", {}, { status: "in_progress", created_at: at(8 * days), updated_at: at(8 * days) }),
    ...paidOrder(
      "unsettled, refunded in part",
      { status: "partially_refunded" },
      { status: "pending", created_at: at(8 * days), updated_at: at(8 * days) },
    ),
    listed(
      "transaction",
      refund("unsettled, refunded in part", 100, {
        created_at: at(8 * days + 9),
        updated_at: at(8 * days + 9),
      }),
    ),
    ...paidOrder("declined", declined, { status: "failed" }),
    ...paidOrder("void", { status: "voided" }, { status: "voided" }),
    ...paidOrder("part", { status: "partially_refunded" }),
    listed("transaction", refund("part", 400)),
    ...paidOrder("refunded", { status: "refunded" }),
    listed("transaction", refund("refunded", 1_000)),
    ...paidOrder("unrefunded", { status: "refund_failed" }),
    listed("transaction", refund("unrefunded", 1_000, { status: "failed" })),
    ...paidOrder(
      "disputed",
      { status: "chargeback", updated_at: at(90) },
      { status: "chargeback", updated_at: at(90) },
    ),
    told("order", order("won", { status: "chargeback", updated_at: at(80) })),
    told("transaction", sale("won", { status: "chargeback", updated_at: at(80) })),
    ...paidOrder("won", { status: "chargeback_dismissed", updated_at: at(90) }, { updated_at: at(90) }),
    listed("subscription", subscription("monthly")),
    ...cycle("monthly", 1, { subtotal: 1_500, total: 1_500 }, { amount: 1_500 }),
    listed(
      "subscription",
      subscription("late", {
        status: "past_due",
        billing_cycle: { interval: "day", interval_count: 7 },
        current_period_end: at(7 * days),
        next_billing_date: at(7 * days),
        next_retry_at: at(11 * days),
      }),
    ),
    ...cycle("late", 1),
    ...declinedCycle("late", 2, { created_at: at(7 * days), updated_at: at(7 * days) }),
    listed(
      "subscription",
      subscription("over", {
        status: "completed",
        total_billing_cycles: 1,
        next_billing_date: null,
      }),
    ),
    ...cycle("over", 1),
    listed(
      "subscription",
      subscription("stopped", {
        status: "canceled",
        canceled_at: at(30),
        next_billing_date: null,
      }),
    ),
    ...cycle("stopped", 1),
    listed(
      "subscription",
      subscription("never", {
        status: "failed",
        current_billing_cycle: 0,
        current_period_start: null,
        current_period_end: null,
        next_billing_date: null,
      }),
    ),
    ...declinedCycle("never", null),
    listed("customer", customer("gone", { deleted: true })),
    listed("transaction", sale(null, { id: "hold", type: "auth" })),
  ];
}

export const applyAll = (db: Knex, observations: readonly Snapshot[]): Promise<unknown> =>
  db.transaction((trx) => applySnapshots(trx, observations));
