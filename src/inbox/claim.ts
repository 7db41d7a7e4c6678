import type { Knex } from "knex";
import { sqlArray } from "../platform/postgres/values.ts";

/** Processing states of an event; docs/architecture.md draws the transitions between them. */
export const eventStates = ["received", "applied", "stale", "ignored", "failed", "dead"] as const;
export type EventState = (typeof eventStates)[number];

/** A stored event that a worker has locked for the length of its transaction. */
export interface ClaimedEvent {
  seq: number;
  eventId: string;
  raw: Buffer;
  receivedAt: Date;
  attempts: number;
  /** An earlier event has the same id and different bytes. */
  reusesId: boolean;
}

export interface Claim {
  events: ClaimedEvent[];
  /** Also locked, but over the byte limit: left for the next transaction. */
  left: number[];
}

/**
 * Locks the rows that are still unapplied and that no other worker has locked. Skips failed rows that are not due yet:
 * a job may come late or twice and must not use up their attempts. Reads the rows in order of arrival, up to `maxBytes`
 * of bodies but at least one, which bounds a worker's memory whatever is sent. Must run in a transaction; its end
 * releases the locks.
 */
export async function claimEvents(
  trx: Knex.Transaction,
  seqs: readonly number[],
  maxBytes: number,
): Promise<Claim> {
  const { rows } = await trx.raw<{ rows: ClaimedRow[] }>(
    `with claimed as materialized (
       select p.seq, p.attempts, r.event_id, r.received_at, r.raw, exists (
         select from inbox.receipts o where o.event_id = r.event_id and o.seq < r.seq) as repeats_id
       from inbox.progress p join inbox.receipts r using (seq)
       where p.seq = any(?::bigint[]) and r.raw is not null
         and (p.state = 'received' or (p.state = 'failed' and p.next_attempt_at <= now()))
       order by p.seq for update of p skip locked
     ), sized as (
       select c.*, sum(octet_length(raw)) over (order by seq rows unbounded preceding exclude current row) as before
       from claimed c
     )
     select seq, attempts, event_id, received_at, repeats_id, case when coalesce(before, 0) < ? then raw end as raw
     from sized order by seq`,
    [sqlArray(seqs), maxBytes],
  );
  const events: ClaimedEvent[] = [];
  const left: number[] = [];
  for (const { seq, event_id: eventId, received_at: receivedAt, raw, ...row } of rows) {
    const { attempts, repeats_id: reusesId } = row;
    if (raw === null) left.push(Number(seq));
    else events.push({ seq: Number(seq), eventId, receivedAt, raw, attempts, reusesId });
  }
  return { events, left };
}

interface ClaimedRow {
  seq: string;
  attempts: number;
  event_id: string;
  received_at: Date;
  raw: Buffer | null;
  repeats_id: boolean;
}

/** The result of processing one event. */
export interface CompletedEvent {
  seq: number;
  state: Exclude<EventState, "received" | "failed">;
  reason: string | null;
  resourceType: string | null;
  resourceId: string | null;
}

/** Marks events as completed, in one statement. Belongs in the transaction that changed the mirror. */
export async function completeEvents(
  trx: Knex.Transaction,
  completedEvents: readonly CompletedEvent[],
): Promise<void> {
  if (completedEvents.length === 0) return;
  await trx.raw(
    `update inbox.progress p
     set state = s.state, reason = s.reason, resource_type = s.resource_type, resource_id = s.resource_id,
         attempts = p.attempts + 1, next_attempt_at = null, settled_at = now(),
         object_known_at = coalesce(p.object_known_at, case when s.resource_id is not null then now() end)
     from unnest(?::bigint[], ?::text[], ?::text[], ?::text[], ?::text[])
       as s(seq, state, reason, resource_type, resource_id)
     where p.seq = s.seq`,
    [
      sqlArray(completedEvents.map(({ seq }) => seq)),
      sqlArray(completedEvents.map(({ state }) => state)),
      sqlArray(completedEvents.map(({ reason }) => reason)),
      sqlArray(completedEvents.map(({ resourceType }) => resourceType)),
      sqlArray(completedEvents.map(({ resourceId }) => resourceId)),
    ],
  );
}

/**
 * Postpones one event after its `attempt`th failure: retried after `delayMs`, or dead when that is null. Returns false
 * when another worker has already completed the event, or postponed it after the same attempt.
 */
export async function postponeEvent(
  db: Knex,
  failed: { seq: number; attempt: number; reason: string; delayMs: number | null },
): Promise<boolean> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `update inbox.progress
     set state = case when :delayMs::float8 is null then 'dead' else 'failed' end,
         attempts = :attempt, reason = :reason,
         settled_at = case when :delayMs::float8 is null then now() end,
         next_attempt_at = now() + make_interval(secs => :delayMs::float8 / 1000), relayed_at = null
     where seq = :seq and state in ('received', 'failed') and attempts = :attempt - 1`,
    failed,
  );
  return rowCount > 0;
}
