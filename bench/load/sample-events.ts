import { createHash } from "node:crypto";

/**
 * A stream of events as a shop sends them, about 1.4 KB each. Of eight, three open an order, three complete an earlier
 * one with its sale included, one renews a subscription, and one is a new customer. The same seed and number give the
 * same event, and no two are equal. Ids are as random as UUIDs, because random keys are what makes indexes expensive.
 */
export function sampleEvent(seed: string, n: number): { id: string; body: Buffer } {
  const id = uuid(seed, "event", n);
  const at = timeOf(n);
  const { type, object } = shapes[n % shapes.length]!(seed, n);
  const event = { id, type, created_at: at, api_version: "2025-06-01", data: { object } };
  return { id, body: Buffer.from(JSON.stringify(event)) };
}

/** How many orders later an order is completed: far enough that both events are rarely in one batch. */
const settledAfter = 1_200;

type Shape = (seed: string, n: number) => { type: string; object: Record<string, unknown> };

const openedOrder: Shape = (seed, n) => ({
  type: "order.created",
  object: order(seed, { orderNumber: n, updatedAt: timeOf(n), status: "pending", sales: [] }),
});

const settledOrder: Shape = (seed, n) => {
  // An odd event completes the order that an earlier even event opened.
  const orderNumber = n - 1 - settledAfter * 2;
  const at = timeOf(n);
  const sale = {
    id: uuid(seed, "transaction", orderNumber),
    type: "sale",
    status: "succeeded",
    amount: 4_750,
    currency: "usd",
    processor_transaction_id: `pt_${orderNumber}`,
    attempt_count: 1,
    failure_code: null,
    failure_reason: null,
    created_at: at,
    updated_at: at,
  };
  return {
    type: "order.succeeded",
    object: order(seed, { orderNumber, updatedAt: at, status: "succeeded", sales: [sale] }),
  };
};

/** A new order that was declined for fraud at that time, which raises an immediate alert. */
export function declinedOrderEvent(seed: string, n: number, at: Date): SampleDecline {
  const updatedAt = at.toISOString();
  const state = order(seed, { orderNumber: n, updatedAt, status: "failed", sales: [] });
  const object = {
    ...state,
    id: uuid(seed, "declined order", n),
    subscription_id: null,
    cycle: null,
    failure_code: "stolen_card",
    failure_reason: "Stolen card",
    created_at: updatedAt,
  };
  const id = uuid(seed, "decline event", n);
  const type = "order.failed";
  const event = { id, type, created_at: updatedAt, api_version: "2025-06-01", data: { object } };
  return { id, orderId: object.id, body: Buffer.from(JSON.stringify(event)) };
}

export interface SampleDecline {
  id: string;
  orderId: string;
  body: Buffer;
}

const renewedSubscription: Shape = (seed, n) => ({
  type: "subscription.charged",
  object: {
    id: uuid(seed, "subscription", n % 40_000),
    customer_id: uuid(seed, "customer", n % 40_000),
    plan: {
      id: uuid(seed, "plan", n % 8),
      name: "Coffee, monthly",
      amount: 2_900,
      currency: "usd",
    },
    status: "active",
    billing_cycle: { interval: "month", frequency: 1 },
    payment_method: card(seed, n),
    shipping_address: address(seed, n),
    current_period_start: timeOf(n),
    current_period_end: timeOf(n + 2_592_000_000),
    current_billing_cycle: 4,
    total_billing_cycles: 0,
    next_billing_date: timeOf(n + 2_592_000_000),
    start_date: timeOf(0),
    end_date: null,
    canceled_at: null,
    applied_coupon: null,
    created_at: timeOf(0),
    updated_at: timeOf(n),
  },
});

const newCustomer: Shape = (seed, n) => ({
  type: "customer.created",
  object: {
    id: uuid(seed, "customer", n),
    email: `buyer-${n}@example.com`,
    first_name: "Ada",
    last_name: "Beispiel",
    phone: `+1555${String(n).padStart(8, "0")}`,
    company: null,
    shipping_address: address(seed, n),
    metadata: { source: "checkout", note: "x".repeat(500) },
    default_payment_method_id: uuid(seed, "card", n),
    created_at: timeOf(n),
    updated_at: timeOf(n),
  },
});

const shapes: readonly Shape[] = [
  openedOrder,
  settledOrder,
  openedOrder,
  settledOrder,
  openedOrder,
  settledOrder,
  renewedSubscription,
  newCustomer,
];

interface OrderState {
  orderNumber: number;
  updatedAt: string;
  status: string;
  sales: Record<string, unknown>[];
}

const order = (seed: string, { orderNumber, updatedAt, status, sales }: OrderState) => ({
  id: uuid(seed, "order", orderNumber),
  order_number: Math.abs(orderNumber).toString(36).toUpperCase().padStart(8, "0"),
  customer_id: uuid(seed, "customer", orderNumber % 40_000),
  status,
  items: [1, 2].map((line) => ({
    id: uuid(seed, `item${line}`, orderNumber),
    product_id: uuid(seed, "product", line),
    name: "Ethiopia, 250 g, whole beans",
    quantity: line,
    price: 1_700,
    total: 1_700 * line,
  })),
  subtotal: 5_100,
  discount_amount: 350,
  total: 4_750,
  currency: "usd",
  description: null,
  applied_coupon: null,
  payment_method: card(seed, orderNumber),
  transactions: sales,
  shipping_address: address(seed, orderNumber),
  metadata: { source: "checkout" },
  failure_code: null,
  failure_reason: null,
  created_at: timeOf(orderNumber),
  updated_at: updatedAt,
});

const card = (seed: string, n: number) => ({
  id: uuid(seed, "card", n),
  card_last_four: "4242",
  card_brand: "visa",
});

const address = (seed: string, n: number) => ({
  id: uuid(seed, "address", n),
  first_name: "Ada",
  last_name: "Beispiel",
  address_line1: "12 Harbour Street",
  address_line2: null,
  city: "Portland",
  state: "OR",
  postal_code: "97201",
  country: "US",
  phone: null,
});

function uuid(seed: string, kind: string, n: number): string {
  const hex = createHash("md5").update(`${seed}:${kind}:${n}`).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
}

/** One event a millisecond, so that no two states of an object share their `updated_at`. */
const timeOf = (n: number): string => new Date(Date.UTC(2025, 0, 1) + n).toISOString();
