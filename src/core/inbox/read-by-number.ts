import type { Knex } from "knex";
import { sqlArray } from "../../platform/postgres/values.ts";
import { readableUntil } from "./arrivals.ts";

/** An event without its bytes, as a reader by number sees it. */
export interface ReadEvent {
  seq: number;
  eventId: string;
  type: string | null;
  receivedAt: Date;
  /** The event's object; null if a worker has found none. */
  object: { type: string; id: string } | null;
}

/**
 * The number up to which a worker has tried all events: their objects are known, and their bytes are without card
 * numbers and erased people. Two statements, on the primary, at READ COMMITTED.
 */
export async function triedUntil(db: Knex): Promise<number> {
  const until = await readableUntil(db);
  const untried = await db("inbox.progress")
    .where({ state: "received" })
    .where("seq", "<=", until)
    .orderBy("seq")
    .first<{ seq: string } | undefined>("seq");
  return untried === undefined ? until : Math.min(until, Number(untried.seq) - 1);
}

export interface EventPage {
  events: ReadEvent[];
  /** All events up to this number were searched. */
  position: number;
  hasMore: boolean;
}

/** The next events that a worker has tried, in the order of their numbers. Three statements. */
export async function readTried(db: Knex, { after, limit }: { after: number; limit: number }): Promise<EventPage> {
  const until = await triedUntil(db);
  if (until <= after) return { events: [], position: after, hasMore: false };
  const { rows } = await db.raw<{ rows: EventColumns[] }>(
    `select r.seq, r.event_id, r.type, r.received_at, p.resource_type, p.resource_id
     from (
       select seq, event_id, type, received_at from inbox.receipts
       where seq > :after and seq <= :until order by seq limit :limit
     ) r
     cross join lateral (
       -- Without the offset a planner that takes the table for small would read all of it.
       select resource_type, resource_id from inbox.progress where seq = r.seq offset 0
     ) p order by r.seq`,
    { after, until, limit },
  );
  const isFull = rows.length === limit;
  const position = isFull ? Number(rows.at(-1)?.seq ?? until) : until;
  return { events: rows.map(readEvent), position, hasMore: isFull };
}

interface EventColumns {
  seq: string;
  event_id: string;
  type: string | null;
  received_at: Date;
  resource_type: string | null;
  resource_id: string | null;
}

function readEvent(row: EventColumns): ReadEvent {
  const { resource_type: type, resource_id: id } = row;
  return {
    seq: Number(row.seq),
    eventId: row.event_id,
    type: row.type,
    receivedAt: row.received_at,
    object: type === null || id === null ? null : { type, id },
  };
}

/** How long before its number an event may be dated: many times the duration of a flush. */
const datedBeforeMs = 60_000;

/**
 * A number before every event that was received at that time or later; few older ones follow. Halves the numbers some 40
 * times, since times grow nearly as numbers do and have no index. Two statements, on the primary, at READ COMMITTED.
 */
export async function eventPositionAt(db: Knex, time: Date): Promise<number> {
  const early = new Date(time.getTime() - datedBeforeMs);
  const { rows } = await db.raw<{ rows: { low: string }[] }>(
    `with recursive half (low, high) as (
       select 0::bigint, :until::bigint
       union all
       select case when next.received_at < :early then next.seq else h.low end,
              case when next.received_at < :early then h.high else (h.low + h.high) / 2 end
       from half h left join lateral (
         select r.seq, r.received_at from inbox.receipts r where r.seq > (h.low + h.high) / 2 order by r.seq limit 1
       ) next on true
       where h.low < h.high
     )
     select low from half where low >= high`,
    { until: await readableUntil(db), early },
  );
  return Number(rows[0]?.low ?? 0);
}

/** The stored bytes of events; null where they were pruned, and nothing for an event that was dropped. One statement. */
export async function readBytes(db: Knex, seqs: readonly number[]): Promise<Map<number, Buffer | null>> {
  const rows = await db("inbox.receipts")
    .whereRaw("seq = any(?::bigint[])", [sqlArray(seqs)])
    .select<{ seq: string; raw: Buffer | null }[]>("seq", "raw");
  return new Map(rows.map(({ seq, raw }) => [Number(seq), raw]));
}
