import { customer, objectId, order, saleOf, subscription } from "./sample-objects.ts";
import type { SampleEvent } from "./protocol.ts";

/**
 * The plain mix: a shop's stream of events without faults, about 1.4 KB each. Of eight, three open an order, three
 * complete an earlier one with its sale included, one renews a subscription, and one is a new customer. The same seed
 * and number give the same event, and no two are equal.
 */
export function sampleEvent(seed: string, n: number): SampleEvent {
  const id = objectId(seed, "event", n);
  const at = timeOf(n);
  const { type, object } = shapes[n % shapes.length]!(seed, n);
  const event = { id, type, created_at: at, api_version: "2025-06-01", data: { object } };
  return { id, number: n, body: Buffer.from(JSON.stringify(event)) };
}

/** How many orders later an order is completed: far enough that both events are rarely in one batch. */
const settledAfter = 1_200;

type Shape = (seed: string, n: number) => { type: string; object: Record<string, unknown> };

const openedOrder: Shape = (seed, n) => {
  const at = timeOf(n);
  const state = { number: n, createdAt: at, updatedAt: at, status: "pending", transactions: [] };
  return { type: "order.created", object: order(seed, state) };
};

const settledOrder: Shape = (seed, n) => {
  // An odd event completes the order that an earlier even event opened.
  const number = n - 1 - settledAfter * 2;
  const updatedAt = timeOf(n);
  const transactions = [saleOf(seed, number, updatedAt)];
  const state = { number, createdAt: timeOf(number), updatedAt, status: "succeeded", transactions };
  return { type: "order.succeeded", object: order(seed, state) };
};

/** A new state of one order, the same for the whole stream. As large as the events of orders in the plain mix. */
export function hotEvent(seed: string, n: number): SampleEvent {
  const id = objectId(seed, "event", n);
  const at = timeOf(n);
  const dates = { createdAt: timeOf(0), updatedAt: at };
  const transactions = [saleOf(seed, 0, timeOf(0))];
  const object = order(seed, { number: 0, ...dates, status: "succeeded", transactions });
  const event = {
    id,
    type: "order.succeeded",
    created_at: at,
    api_version: "2025-06-01",
    data: { object },
  };
  return { id, number: n, body: Buffer.from(JSON.stringify(event)) };
}

/** A new order that was declined for fraud at that time, which raises an immediate alert. */
export function declinedOrderEvent(seed: string, n: number, at: Date): SampleDecline {
  const updatedAt = at.toISOString();
  const dates = { createdAt: updatedAt, updatedAt };
  const object = {
    ...order(seed, { number: n, ...dates, status: "failed", transactions: [] }),
    id: objectId(seed, "declined order", n),
    subscription_id: null,
    cycle: null,
    failure_code: "stolen_card",
    failure_reason: "Stolen card",
  };
  const id = objectId(seed, "decline event", n);
  const type = "order.failed";
  const event = { id, type, created_at: updatedAt, api_version: "2025-06-01", data: { object } };
  return { id, orderId: object.id, body: Buffer.from(JSON.stringify(event)) };
}

export interface SampleDecline {
  id: string;
  orderId: string;
  body: Buffer;
}

const renewedSubscription: Shape = (seed, n) => {
  const state = { number: n % 40_000, createdAt: timeOf(0), updatedAt: timeOf(n), cycle: 4 };
  return { type: "subscription.charged", object: subscription(seed, state) };
};

const newCustomer: Shape = (seed, n) => {
  const at = timeOf(n);
  const state = { number: n, createdAt: at, updatedAt: at };
  return { type: "customer.created", object: customer(seed, state) };
};

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

/** One event a millisecond, so that no two states of an object share their `updated_at`. */
export const timeOf = (n: number): string => new Date(Date.UTC(2025, 0, 1) + n).toISOString();
