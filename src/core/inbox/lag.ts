import type { Knex } from "knex";
import { readableUntil } from "./arrivals.ts";
import { eventPositionAt } from "./read-by-number.ts";

/** Percentiles in milliseconds. Null where no event has the times. */
export interface Percentiles {
  p50: number | null;
  p95: number | null;
  p99: number | null;
}

export interface DayOfLag {
  /** `2026-03-04`, in the zone that was asked for. */
  day: string;
  /** Number of events sampled. */
  events: number;
  /** The time from an event's own date, by the service's clock, to its receipt. */
  untilReceived: Percentiles;
  /** The time from its receipt to the last time that it was applied: a replay counts from the receipt, too. */
  untilApplied: Percentiles;
}

export interface Lag {
  /** The newest first. Days without events are absent. */
  days: DayOfLag[];
  /** The sampling interval in numbers; 1: all. */
  everyNth: number;
}

const mostLookedAt = 5_000;

/**
 * How late events were received and applied, by day of receipt. Samples events that are evenly spread over the numbers
 * since then, so that it is as fast with millions. Only those that a worker has completed. Some 40 statements; outside
 * of a transaction.
 */
export async function readLag(db: Knex, { from, timeZone }: { from: Date; timeZone: string }): Promise<Lag> {
  const after = await eventPositionAt(db, from);
  const until = await readableUntil(db);
  const everyNth = Math.max(1, Math.ceil((until - after) / mostLookedAt));
  const { rows } = await db.raw<{ rows: LagRow[] }>(
    `with looked_at as (
       select distinct on (p.seq) p.seq, p.arrived_at,
         (extract(epoch from p.arrived_at - p.event_at) * 1000)::float8 as received_ms,
         (extract(epoch from p.settled_at - p.arrived_at) * 1000)::float8 as applied_ms
       from generate_series(:after::bigint + 1, :until::bigint, :everyNth::bigint) n(seq)
       cross join lateral (
         select seq, arrived_at, event_at, settled_at from inbox.progress p
         where p.seq >= n.seq and p.seq <= :until::bigint order by p.seq limit 1
       ) p
       where p.arrived_at >= :from::timestamptz
     )
     select to_char(arrived_at at time zone :timeZone, 'YYYY-MM-DD') as day, count(*) as events,
       percentile_disc(array[0.5, 0.95, 0.99]) within group (order by received_ms) as received,
       percentile_disc(array[0.5, 0.95, 0.99]) within group (order by applied_ms) as applied
     from looked_at group by 1 order by 1 desc`,
    { after, until, everyNth, from, timeZone },
  );
  return {
    everyNth,
    days: rows.map(({ day, events, received, applied }) => ({
      day,
      events: Number(events),
      untilReceived: percentilesOf(received),
      untilApplied: percentilesOf(applied),
    })),
  };
}

interface LagRow {
  day: string;
  events: string;
  received: (number | null)[] | null;
  applied: (number | null)[] | null;
}

const percentilesOf = (values: (number | null)[] | null): Percentiles => ({
  p50: values?.[0] ?? null,
  p95: values?.[1] ?? null,
  p99: values?.[2] ?? null,
});
