import { createHash, createHmac } from "node:crypto";
import type { EventStream, SampleEvent } from "./protocol.ts";

/*
 * Events of Stripe for the peer, in the shares of the plain mix and about as large: of eight, three open a payment, three
 * complete an earlier one, one renews a subscription, and one is a new customer. The payments are an invoice, a payment
 * intent and a charge in turn, as Stripe announces them. The objects have the fields that matter; the peer stores null
 * for the others.
 */

/** The peer's row of an event. */
export interface StripeRow {
  table: "invoices" | "payment_intents" | "charges" | "subscriptions" | "customers";
  id: string;
  /** The row's status from then on; null where the table has no changing status. */
  status: string | null;
}

interface Shape {
  type: string;
  table: StripeRow["table"];
  prefix: string;
  /** The number of the object that the delivery `n` shows. */
  numberOf: (n: number) => number;
  status: string | null;
  fields: (of: Subject) => Record<string, unknown>;
}

interface Subject {
  seed: string;
  number: number;
  /** Seconds since the epoch. */
  createdAt: number;
  changedAt: number;
  status: string | null;
}

/** How many deliveries later a payment is completed, as in the plain mix. */
const completedAfter = 2_401;
const opened = (n: number): number => n;
const completed = (n: number): number => n - completedAfter;

const address = {
  city: "Portland",
  country: "US",
  line1: "12 Harbour Street",
  line2: null,
  postal_code: "97201",
  state: "OR",
};

const invoice = ({ seed, number, createdAt, status }: Subject) => ({
  object: "invoice",
  account_country: "US",
  account_name: "Coffee",
  amount_due: 4_750,
  amount_paid: status === "paid" ? 4_750 : 0,
  amount_remaining: status === "paid" ? 0 : 4_750,
  attempt_count: 1,
  attempted: true,
  auto_advance: true,
  billing_reason: "manual",
  collection_method: "charge_automatically",
  created: createdAt,
  currency: "usd",
  customer: idOf(seed, "cus", number % 40_000),
  customer_address: address,
  customer_email: `buyer-${number % 40_000}@example.com`,
  customer_name: "Ada Beispiel",
  lines: {
    object: "list",
    data: [1, 2].map((line) => ({
      id: idOf(seed, `il${line}`, number),
      object: "line_item",
      amount: 1_700 * line,
      currency: "usd",
      description: "Ethiopia, 250 g, whole beans",
      quantity: line,
    })),
    has_more: false,
    total_count: 2,
    url: "/v1/invoices/lines",
  },
  livemode: false,
  metadata: { source: "checkout" },
  number: `A${Math.abs(number)}`,
  paid: status === "paid",
  period_end: createdAt,
  period_start: createdAt,
  subtotal: 5_100,
  total: 4_750,
  payment_intent: idOf(seed, "pi", number),
});

const paymentIntent = ({ seed, number, createdAt, status }: Subject) => ({
  object: "payment_intent",
  amount: 4_750,
  amount_capturable: 0,
  amount_details: { tip: {} },
  amount_received: status === "succeeded" ? 4_750 : 0,
  automatic_payment_methods: { allow_redirects: "always", enabled: true },
  capture_method: "automatic",
  client_secret: `${idOf(seed, "pi", number)}_secret_${number}`,
  confirmation_method: "automatic",
  created: createdAt,
  currency: "usd",
  customer: idOf(seed, "cus", number % 40_000),
  description: "Ethiopia, 250 g, whole beans",
  livemode: false,
  metadata: { source: "checkout", note: "x".repeat(400) },
  payment_method: idOf(seed, "pm", number),
  payment_method_options: { card: { request_three_d_secure: "automatic" } },
  payment_method_types: ["card"],
  receipt_email: `buyer-${number % 40_000}@example.com`,
  shipping: { address, name: "Ada Beispiel" },
});

const charge = ({ seed, number, createdAt, status }: Subject) => ({
  object: "charge",
  amount: 4_750,
  amount_refunded: 0,
  captured: status === "succeeded",
  created: createdAt,
  currency: "usd",
  customer: idOf(seed, "cus", number % 40_000),
  description: "Ethiopia, 250 g, whole beans",
  fraud_details: {},
  livemode: false,
  metadata: { source: "checkout", note: "x".repeat(250) },
  outcome: { network_status: "approved_by_network", risk_level: "normal", type: "authorized" },
  paid: status === "succeeded",
  payment_intent: idOf(seed, "pi", number),
  payment_method_details: {
    card: { brand: "visa", country: "US", exp_month: 8, exp_year: 2030, last4: "4242" },
    type: "card",
  },
  receipt_email: `buyer-${number % 40_000}@example.com`,
  refunded: false,
  shipping: { address, name: "Ada Beispiel" },
});

const monthSeconds = 30 * 24 * 3_600;

const subscription = ({ seed, number, createdAt, changedAt }: Subject) => ({
  object: "subscription",
  billing_cycle_anchor: createdAt,
  cancel_at_period_end: false,
  collection_method: "charge_automatically",
  created: createdAt,
  current_period_end: changedAt + monthSeconds,
  current_period_start: changedAt,
  customer: idOf(seed, "cus", number),
  default_payment_method: idOf(seed, "pm", number),
  items: {
    object: "list",
    data: [
      {
        id: idOf(seed, "si", number),
        object: "subscription_item",
        created: createdAt,
        metadata: {},
        price: {
          id: idOf(seed, "price", number % 8),
          object: "price",
          active: true,
          currency: "usd",
          product: idOf(seed, "prod", number % 8),
          recurring: { interval: "month", interval_count: 1, usage_type: "licensed" },
          type: "recurring",
          unit_amount: 2_900,
        },
        quantity: 1,
        subscription: idOf(seed, "sub", number),
      },
    ],
    has_more: false,
    total_count: 1,
    url: "/v1/subscription_items",
  },
  livemode: false,
  latest_invoice: idOf(seed, "in", number),
  metadata: { source: "checkout" },
  start_date: createdAt,
});

const customer = ({ seed, number, createdAt }: Subject) => ({
  object: "customer",
  address,
  balance: 0,
  created: createdAt,
  currency: "usd",
  default_source: idOf(seed, "card", number),
  delinquent: false,
  email: `buyer-${number}@example.com`,
  invoice_prefix: "ABCDEF01",
  invoice_settings: { default_payment_method: idOf(seed, "pm", number) },
  livemode: false,
  metadata: { source: "checkout", note: "x".repeat(400) },
  name: "Ada Beispiel",
  phone: `+1555${String(number).padStart(8, "0")}`,
  preferred_locales: ["en-US"],
  shipping: { address, name: "Ada Beispiel" },
  tax_exempt: "none",
});

const invoices = { table: "invoices", prefix: "in", fields: invoice } as const;
const intents = { table: "payment_intents", prefix: "pi", fields: paymentIntent } as const;
const charges = { table: "charges", prefix: "ch", fields: charge } as const;

const shapes: readonly Shape[] = [
  { ...invoices, type: "invoice.created", numberOf: opened, status: "open" },
  { ...invoices, type: "invoice.paid", numberOf: completed, status: "paid" },
  { ...intents, type: "payment_intent.created", numberOf: opened, status: "processing" },
  { ...intents, type: "payment_intent.succeeded", numberOf: completed, status: "succeeded" },
  { ...charges, type: "charge.pending", numberOf: opened, status: "pending" },
  { ...charges, type: "charge.succeeded", numberOf: completed, status: "succeeded" },
  {
    table: "subscriptions",
    prefix: "sub",
    fields: subscription,
    type: "customer.subscription.updated",
    numberOf: (n) => n % 40_000,
    status: "active",
  },
  {
    table: "customers",
    prefix: "cus",
    fields: customer,
    type: "customer.created",
    numberOf: opened,
    status: null,
  },
];

export function stripeEvent({ seed, sinceMs }: EventStream, n: number): SampleEvent {
  const { type, fields, prefix, numberOf, status } = shapes[n % shapes.length]!;
  const secondsAt = (at: number) => Math.floor((sinceMs + at) / 1_000);
  const number = numberOf(n);
  const changedAt = secondsAt(n);
  const subject = { seed, number, createdAt: secondsAt(number), changedAt, status };
  const object = {
    id: idOf(seed, prefix, number),
    ...(status === null ? {} : { status }),
    ...fields(subject),
  };
  const id = idOf(seed, "evt", n);
  const event = {
    id,
    object: "event",
    api_version: "2020-08-27",
    created: changedAt,
    data: { object },
    livemode: false,
    pending_webhooks: 1,
    request: { id: null, idempotency_key: null },
    type,
  };
  return { id, number: n, body: Buffer.from(JSON.stringify(event)) };
}

export function stripeRow({ seed }: Pick<EventStream, "seed">, n: number): StripeRow {
  const { table, prefix, numberOf, status } = shapes[n % shapes.length]!;
  return { table, id: idOf(seed, prefix, numberOf(n)), status };
}

/** Stripe's signature header: a time, and an HMAC of the time and the body. */
export function stripeSignature(secret: string, body: Buffer, at: Date): Record<string, string> {
  const time = Math.floor(at.getTime() / 1_000);
  const signature = createHmac("sha256", secret).update(`${time}.`).update(body).digest("hex");
  return { "Stripe-Signature": `t=${time},v1=${signature}` };
}

/** Random where an index compares it, as Stripe's ids are. */
function idOf(seed: string, prefix: string, number: number): string {
  const hex = createHash("md5").update(`${seed}:${prefix}:${number}`).digest("hex");
  return `${prefix}_${hex.slice(0, 24)}`;
}
