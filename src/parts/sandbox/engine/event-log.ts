import { type CustomerRecord, customerBody } from "../resources/customers/customer.ts";
import { type OrderRecord, orderBody } from "../resources/orders/order.ts";
import { type SubscriptionRecord, subscriptionBody } from "../resources/subscriptions/subscription.ts";
import { type WebhookEndpointRecord, webhookEndpointBody } from "../resources/webhook-endpoints/webhook-endpoint.ts";
import type { Mode } from "./keys.ts";

/**
 * The object of an event: a snapshot, since records are never changed in place. `extra` holds fields that only the
 * event has.
 */
export type EventSubject =
  | { kind: "order"; record: OrderRecord; extra?: Readonly<Record<string, unknown>> }
  | { kind: "customer"; record: CustomerRecord }
  | { kind: "subscription"; record: SubscriptionRecord }
  | { kind: "webhook_endpoint"; record: WebhookEndpointRecord };

/** How a fault damages the content of an event. */
export type EventFlaw = "extra_fields" | "missing_field" | "thin_object";

export interface EventRecord {
  readonly id: string;
  readonly type: string;
  readonly created_at: string;
  readonly merchant: string;
  readonly mode: Mode;
  readonly subject: EventSubject;
  readonly flaw: EventFlaw | null;
}

/** The event types that the sandbox sends. An endpoint may subscribe to these, to `*` and to `family.*`. */
export const knownEventTypes: readonly string[] = [
  "customer.created",
  "customer.deleted",
  "customer.updated",
  "order.created",
  "order.failed",
  "order.refund_failed",
  "order.refunded",
  "order.succeeded",
  "order.voided",
  "subscription.billing.updated",
  "subscription.canceled",
  "subscription.charged",
  "subscription.completed",
  "subscription.created",
  "subscription.updated",
];

/** The latest events, for `GET /_sandbox/events`. */
export interface EventLog {
  readonly total: number;
  append(event: EventRecord): void;
  /** Oldest first. */
  latest(): EventRecord[];
  /** For a saved state: only the end of the log. */
  dump(): EventLogDump;
  restore(dump: EventLogDump): void;
}

export interface EventLogDump {
  total: number;
  latest: EventRecord[];
}

/** The number of entries of the event and delivery logs that survive a restart. */
export const dumpedLogEntries = 1000;

const keptEvents = 50_000;

export function createEventLog(): EventLog {
  const ring = createRing<EventRecord>(keptEvents);
  return {
    get total() {
      return ring.total;
    },
    append: (event) => ring.push(event),
    latest: () => ring.toArray(),
    dump: () => ({ total: ring.total, latest: ring.toArray().slice(-dumpedLogEntries) }),
    restore: ({ total, latest }) => ring.restore(latest, total),
  };
}

/** The last `capacity` entries of a stream. */
export interface Ring<T> {
  /** The number of entries ever pushed. */
  readonly total: number;
  push(entry: T): void;
  /** Oldest first. */
  toArray(): T[];
  /** Restores a stream of which only the latest entries are known. */
  restore(latest: readonly T[], total: number): void;
}

export function createRing<T>(capacity: number): Ring<T> {
  const entries: T[] = [];
  let total = 0;
  /** The index of the oldest entry of a full ring. */
  let oldest = 0;
  return {
    get total() {
      return total;
    },
    push(entry) {
      total += 1;
      if (entries.length < capacity) {
        entries.push(entry);
        return;
      }
      entries[oldest] = entry;
      oldest = (oldest + 1) % capacity;
    },
    toArray: () => [...entries.slice(oldest), ...entries.slice(0, oldest)],
    restore(latest, knownTotal) {
      entries.splice(0, Infinity, ...latest.slice(-capacity));
      oldest = 0;
      total = knownTotal;
    },
  };
}

/**
 * The envelope of an event. The interface does not show it, so its form is assumed. The same event gives the same
 * bytes.
 */
export function eventBody(event: EventRecord, apiVersion: string): Record<string, unknown> {
  const object = objectOf(event.subject, event.created_at);
  return {
    id: event.id,
    type: event.type,
    created_at: event.created_at,
    api_version: apiVersion,
    data: { object: event.flaw === null ? object : flawed(object, event.flaw) },
  };
}

function objectOf(subject: EventSubject, nowIso: string): Record<string, unknown> {
  switch (subject.kind) {
    case "order":
      return { ...orderBody(subject.record), ...subject.extra };
    case "customer":
      return customerBody(subject.record);
    case "subscription":
      return subscriptionBody(subject.record);
    case "webhook_endpoint":
      return webhookEndpointBody(subject.record, nowIso);
  }
}

/** Optional in every object. The fault leaves out the first one present. */
const optionalFields = ["metadata", "shipping_address", "description"] as const;

function flawed(object: Record<string, unknown>, flaw: EventFlaw): Record<string, unknown> {
  if (flaw === "thin_object") return { id: object.id };
  if (flaw === "extra_fields") {
    return { ...object, sandbox_extra: { note: "a field that nobody knows", list: [1, 2, 3] } };
  }
  const missing = optionalFields.find((field) => field in object);
  const rest = Object.entries(object).filter(([field]) => field !== missing);
  return Object.fromEntries(rest);
}
