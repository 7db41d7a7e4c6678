import { createHash } from "node:crypto";

/*
 * The objects of the sample shop, each about as large as a shop's. The same seed and number give the same object.
 */

export interface OrderState {
  number: number;
  createdAt: string;
  updatedAt: string;
  status: string;
  transactions: Record<string, unknown>[];
}

/** An order of two items. */
export const order = (seed: string, { number, createdAt, updatedAt, status, transactions }: OrderState) => ({
  id: objectId(seed, "order", number),
  order_number: Math.abs(number).toString(36).toUpperCase().padStart(8, "0"),
  customer_id: objectId(seed, "customer", number % 40_000),
  status,
  items: [1, 2].map((line) => ({
    id: objectId(seed, `item${line}`, number),
    product_id: objectId(seed, "product", line),
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
  payment_method: card(seed, number),
  transactions,
  shipping_address: address(seed, number),
  metadata: { source: "checkout" },
  failure_code: null,
  failure_reason: null,
  created_at: createdAt,
  updated_at: updatedAt,
});

/** The sale of an order, as the order carries it. */
export const saleOf = (seed: string, orderNumber: number, at: string) => ({
  id: objectId(seed, "transaction", orderNumber),
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
});

interface SubscriptionState {
  number: number;
  createdAt: string;
  updatedAt: string;
  cycle: number;
}

/** An active monthly subscription. */
export const subscription = (seed: string, { number, createdAt, updatedAt, cycle }: SubscriptionState) => {
  const nextAt = new Date(Date.parse(updatedAt) + 30 * 24 * 3_600_000).toISOString();
  return {
    id: objectId(seed, "subscription", number),
    customer_id: objectId(seed, "customer", number),
    plan: {
      id: objectId(seed, "plan", number % 8),
      name: "Coffee, monthly",
      amount: 2_900,
      currency: "usd",
    },
    status: "active",
    billing_cycle: { interval: "month", frequency: 1 },
    payment_method: card(seed, number),
    shipping_address: address(seed, number),
    current_period_start: updatedAt,
    current_period_end: nextAt,
    current_billing_cycle: cycle,
    total_billing_cycles: 0,
    next_billing_date: nextAt,
    start_date: createdAt,
    end_date: null,
    canceled_at: null,
    applied_coupon: null,
    created_at: createdAt,
    updated_at: updatedAt,
  };
};

interface CustomerState {
  number: number;
  createdAt: string;
  updatedAt: string;
}

export const customer = (seed: string, { number, createdAt, updatedAt }: CustomerState) => ({
  id: objectId(seed, "customer", number),
  email: `buyer-${number}@example.com`,
  first_name: "Ada",
  last_name: "Beispiel",
  phone: `+1555${String(number).padStart(8, "0")}`,
  company: null,
  shipping_address: address(seed, number),
  metadata: { source: "checkout", note: "x".repeat(500) },
  default_payment_method_id: objectId(seed, "card", number),
  created_at: createdAt,
  updated_at: updatedAt,
});

const card = (seed: string, number: number) => ({
  id: objectId(seed, "card", number),
  card_last_four: "4242",
  card_brand: "visa",
});

const address = (seed: string, number: number) => ({
  id: objectId(seed, "address", number),
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

/** Lifts every number of a stream above 0. Early events name objects that are older than the stream. */
const numberOffset = 2 ** 40;

/**
 * An id as random as a UUID where an index compares it, because random keys make indexes expensive. Its last twelve
 * digits are the object's number, so that a service can identify the requested object.
 */
export function objectId(seed: string, kind: string, number: number): string {
  const hex = createHash("md5").update(`${seed}:${kind}:${number}`).digest("hex");
  const tail = (number + numberOffset).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${tail}`;
}

/** The number in an id of `objectId`. */
export const numberOfId = (id: string): number => Number.parseInt(id.slice(-12), 16) - numberOffset;
