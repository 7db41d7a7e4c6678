import type { EventRecord } from "../events.ts";
import { dumpedLogEntries } from "../events.ts";
import { createRing } from "../store/ring.ts";
import type { Delivery } from "./delivery.ts";

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

/** An event that the log of events no longer holds travels with its delivery. */
type DumpedDelivery = Omit<Delivery, "event"> & { event_id: string; event: EventRecord };

/** The latest deliveries, and counts of all. */
export interface DeliveryLog {
  readonly counts: DeliveryCounts;
  append(delivery: Delivery): void;
  find(id: string): Delivery | undefined;
  /** Oldest first. */
  latest(): Delivery[];
  /** For a state that is written down: what is still to be delivered, and the end of the log. */
  dump(): DeliveryLogDump;
  /** Goes on where `dump` was made, and returns its deliveries; `events` are those that the log of events still has. */
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
