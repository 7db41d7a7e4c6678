import type { Knex } from "knex";
import { sqlArray } from "../../platform/postgres/values.ts";
import type { EventState } from "./claim.ts";

/** An event as shown to people and tools: everything but its bytes. */
export interface EventRow {
  seq: number;
  event_id: string;
  type: string | null;
  api_version: string | null;
  event_created_at: Date | null;
  received_at: Date;
  secret_id: string;
  state: EventState;
  attempts: number;
  next_attempt_at: Date | null;
  reason: string | null;
  resource_type: string | null;
  resource_id: string | null;
  deliveries: number;
}

const eventColumns = [
  "seq",
  "event_id",
  "type",
  "api_version",
  "event_created_at",
  "received_at",
  "secret_id",
  "state",
  "attempts",
  "next_attempt_at",
  "reason",
  "resource_type",
  "resource_id",
  "deliveries",
] as const;

/** The events with these sequence numbers, in ascending order. One statement. */
export async function listEventsOf(db: Knex, seqs: readonly number[]): Promise<EventRow[]> {
  if (seqs.length === 0) return [];
  const rows = await db("inbox.events")
    .select(eventColumns)
    .whereRaw("seq = any(?::bigint[])", [sqlArray(seqs)])
    .orderBy("seq");
  return rows.map(withNumericSeq);
}

/** The newest events that a worker has yet to complete, in ascending order. One statement. */
export async function listOpenEvents(db: Knex, limit: number): Promise<EventRow[]> {
  const open = (state: EventState) =>
    `(select seq from inbox.progress where state = '${state}' order by seq desc limit :limit)`;
  const rows = await db("inbox.events")
    .select(eventColumns)
    .whereRaw(
      `seq = any(array(
         select seq from (${open("received")} union all ${open("failed")}) open order by seq desc limit :limit))`,
      { limit },
    )
    .orderBy("seq");
  return rows.map(withNumericSeq);
}

export interface StoredEvent extends EventRow {
  raw: Buffer | null;
  /** Whether the bytes were rewritten since they arrived (retention.ts); null when they were pruned. */
  rewritten: boolean | null;
}

/** Every row with this event id (one id may come with several bodies), or with this sequence number. */
export async function findEvents(db: Knex, idOrSeq: string): Promise<StoredEvent[]> {
  const query = db("inbox.events")
    .select<StoredEvent[]>([...eventColumns, "raw", db.raw("sha256(raw) <> raw_sha256 as rewritten")])
    .where("event_id", idOrSeq)
    .orderBy("seq");
  if (/^\d{1,15}$/.test(idOrSeq)) void query.orWhere("seq", idOrSeq);
  return (await query).map(withNumericSeq);
}

const withNumericSeq = <Row extends { seq: unknown }>(row: Row) => ({
  ...row,
  seq: Number(row.seq),
});

/** The number of events in each state, 0 included. */
export async function countByState(db: Knex): Promise<Record<EventState, number>> {
  const counts: Record<EventState, number> = {
    received: 0,
    applied: 0,
    stale: 0,
    ignored: 0,
    failed: 0,
    dead: 0,
  };
  const { rows } = await db.raw<{ rows: { state: EventState; n: string }[] }>(
    "select state, count(*) as n from inbox.progress group by state",
  );
  for (const { state, n } of rows) counts[state] = Number(n);
  return counts;
}

/**
 * Counts events still to be applied and pending refetches. When both are 0, everything that arrived is in the mirror.
 */
export async function countOpenWork(db: Knex): Promise<{ events: number; fetches: number }> {
  const { rows } = await db.raw<{ rows: { events: string; fetches: string }[] }>(
    `select (select count(*) from inbox.progress where state in ('received', 'failed')) as events,
            (select count(*) from inbox.fetches) as fetches`,
  );
  return { events: Number(rows[0]?.events ?? 0), fetches: Number(rows[0]?.fetches ?? 0) };
}

/** When the first event ever received was created (first-event-at.sql). Null without events. */
export async function firstEventAt(db: Knex): Promise<Date | null> {
  const { rows } = await db.raw<{ rows: { at: Date | null }[] }>("select inbox.first_event_at() as at");
  return rows[0]?.at ?? null;
}

/** One event about an object, as the inbox records it. */
export interface InboxTrace {
  resourceId: string;
  seq: number;
  eventId: string;
  type: string | null;
  state: EventState;
  /** Dated by the service's clock. */
  createdAt: Date | null;
  receivedAt: Date;
}

/** The newest events about each of these objects, at most `perObject` of each, newest first. One statement. */
export async function traceEvents(db: Knex, resourceIds: readonly string[], perObject = 5): Promise<InboxTrace[]> {
  if (resourceIds.length === 0) return [];
  const { rows } = await db.raw<{ rows: TraceRow[] }>(
    `select wanted.id as resource_id, known.*
     from unnest(?::text[]) as wanted(id)
     cross join lateral (
       select p.seq, r.event_id, r.type, p.state, r.event_created_at, r.received_at
       from inbox.progress p join inbox.receipts r using (seq)
       where p.resource_id = wanted.id order by p.seq desc limit ?
     ) known`,
    [[...resourceIds], perObject],
  );
  return rows.map((row) => ({
    resourceId: row.resource_id,
    seq: Number(row.seq),
    eventId: row.event_id,
    type: row.type,
    state: row.state,
    createdAt: row.event_created_at,
    receivedAt: row.received_at,
  }));
}

/**
 * The newest events about an object that failed and are tried again, or are dead, at most `limit`, newest first. An
 * event whose object is unknown is not among them. One statement.
 */
export async function failedEventsOf(
  db: Knex,
  { resource, id }: { resource: string; id: string },
  limit: number,
): Promise<{ seq: number; type: string | null; state: EventState; receivedAt: Date }[]> {
  const { rows } = await db.raw<{ rows: TraceRow[] }>(
    `select p.seq, r.type, p.state, r.received_at
     from inbox.progress p join inbox.receipts r using (seq)
     where p.resource_id = ? and p.resource_type = ? and p.state in ('failed', 'dead')
     order by p.seq desc limit ?`,
    [id, resource, limit],
  );
  return rows.map((row) => ({
    seq: Number(row.seq),
    type: row.type,
    state: row.state,
    receivedAt: row.received_at,
  }));
}

interface TraceRow {
  resource_id: string;
  seq: string;
  event_id: string;
  type: string | null;
  state: EventState;
  event_created_at: Date | null;
  received_at: Date;
}

/**
 * The sequence numbers of all events with each of these ids, in order of arrival. There is more than one when the
 * service sent different bytes with the same id.
 */
export async function seqsOfIds(db: Knex, eventIds: readonly string[]): Promise<Map<string, number[]>> {
  const { rows } = await db.raw<{ rows: { event_id: string; seqs: string[] }[] }>(
    `select event_id, array_agg(seq order by seq) as seqs from inbox.receipts
     where event_id = any(?::text[]) group by event_id`,
    [sqlArray(eventIds)],
  );
  return new Map(rows.map(({ event_id, seqs }) => [event_id, seqs.map(Number)]));
}

/** When work on an event ended, and when its object became known. */
export interface EventWork {
  /** When a worker first determined its object; a replay does not change it. */
  objectKnownAt: Date | null;
  /** When it got the state that it has; null while it is to be applied. */
  settledAt: Date | null;
}

/** Null if there is no such event. One statement. */
export async function readWork(db: Knex, seq: number): Promise<EventWork | null> {
  const row = await db("inbox.progress")
    .where({ seq })
    .first<{ object_known_at: Date | null; settled_at: Date | null } | undefined>("object_known_at", "settled_at");
  return row === undefined ? null : { objectKnownAt: row.object_known_at, settledAt: row.settled_at };
}
