import { type EventRecord, createRing, dumpedLogEntries } from "../event-log.ts";
import type { FaultPlan } from "../faults.ts";

/**
 * `lost`: dropped by a fault and never retried. `canceled`: its endpoint was removed or disabled. `failed`: the last
 * attempt failed.
 */
export type DeliveryStatus = "pending" | "succeeded" | "failed" | "lost" | "canceled";

export interface DeliveryAttempt {
  /** The sandbox's time, ISO 8601. */
  at: string;
  /** HTTP status; null when there was no answer. */
  status: number | null;
  error: string | null;
  kind: AttemptKind;
}

export type AttemptKind = "normal" | "duplicate" | "corrupt";

/** The delivery of one event to one endpoint. The record changes while the delivery is in progress. */
export interface Delivery {
  readonly id: string;
  readonly event: EventRecord;
  readonly endpointId: string;
  readonly faults: readonly (keyof FaultPlan)[];
  status: DeliveryStatus;
  attempts: DeliveryAttempt[];
  /** Failed attempts that count in the retry schedule. */
  failures: number;
  nextAttemptAt: string | null;
}

/** A delivery as the delivery log shows it. */
export function deliveryBody(delivery: Delivery): Record<string, unknown> {
  return {
    id: delivery.id,
    event_id: delivery.event.id,
    event_type: delivery.event.type,
    endpoint_id: delivery.endpointId,
    mode: delivery.event.mode,
    status: delivery.status,
    error_code: delivery.status === "failed" ? "webhook_delivery_failed" : null,
    faults: delivery.faults,
    attempts: delivery.attempts,
    next_attempt_at: delivery.nextAttemptAt,
    created_at: delivery.event.created_at,
  };
}

export interface DeliveryCounts {
  created: number;
  sent: number;
  accepted: number;
  refused: number;
  duplicated: number;
  corrupted: number;
  lost: number;
  failed: number;
}

export interface DeliveryLogDump {
  counts: DeliveryCounts;
  latest: DumpedDelivery[];
}

/** A delivery carries its event along once the event log has dropped it. */
type DumpedDelivery = Omit<Delivery, "event"> & { event_id: string; event: EventRecord };

/** The latest deliveries, and counts of all. */
export interface DeliveryLog {
  readonly counts: DeliveryCounts;
  append(delivery: Delivery): void;
  find(id: string): Delivery | undefined;
  /** Oldest first. */
  latest(): Delivery[];
  /** For a saved state: the unfinished deliveries, and the end of the log. */
  dump(): DeliveryLogDump;
  /** Restores a dump and returns its unfinished deliveries. `events` are those that the event log still holds. */
  restore(dump: DeliveryLogDump, events: readonly EventRecord[]): Delivery[];
}

const keptDeliveries = 50_000;

export function createDeliveryLog(): DeliveryLog {
  const ring = createRing<Delivery>(keptDeliveries);
  const counts: DeliveryCounts = {
    created: 0,
    sent: 0,
    accepted: 0,
    refused: 0,
    duplicated: 0,
    corrupted: 0,
    lost: 0,
    failed: 0,
  };
  return {
    counts,
    append(delivery) {
      ring.push(delivery);
      counts.created += 1;
    },
    find: (id) => ring.toArray().find((delivery) => delivery.id === id),
    latest: () => ring.toArray(),
    dump() {
      const all = ring.toArray();
      const later = all.slice(-dumpedLogEntries);
      const open = all.slice(0, -dumpedLogEntries).filter(({ status }) => status === "pending");
      const latest = [...open, ...later].map((delivery) => ({
        ...delivery,
        attempts: [...delivery.attempts],
        event_id: delivery.event.id,
      }));
      return { counts: { ...counts }, latest };
    },
    restore(dump, events) {
      const known = new Map(events.map((event) => [event.id, event]));
      Object.assign(counts, dump.counts);
      const deliveries = dump.latest.map(({ event_id, ...delivery }): Delivery => ({
        ...delivery,
        event: known.get(event_id) ?? delivery.event,
      }));
      ring.restore(deliveries, counts.created);
      return deliveries;
    },
  };
}
