import type { CustomerRecord } from "./records/customer.ts";
import type { OrderRecord } from "./records/order.ts";
import type { SubscriptionRecord } from "./records/subscription.ts";
import type { WebhookEndpointRecord } from "./records/webhook-endpoint.ts";
import type { Mode } from "./mode.ts";
import { createRing } from "./store/ring.ts";

/** What an event is about: a snapshot, since records are never changed. `extra` are fields that only the event has. */
export type EventSubject =
  | { kind: "order"; record: OrderRecord; extra?: Readonly<Record<string, unknown>> }
  | { kind: "customer"; record: CustomerRecord }
  | { kind: "subscription"; record: SubscriptionRecord }
  | { kind: "webhook_endpoint"; record: WebhookEndpointRecord };

/** How a fault spoils what an event shows. */
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

/** Names of events that the sandbox sends; an endpoint may ask for these, for `*` and for `family.*`. */
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
  /** For a state that is written down: of the log, only the end. */
  dump(): EventLogDump;
  restore(dump: EventLogDump): void;
}

export interface EventLogDump {
  total: number;
  latest: EventRecord[];
}

/** How much of the logs of events and deliveries outlives a restart. */
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
