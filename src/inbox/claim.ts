import type { Knex } from "knex";
import { sqlArray } from "../platform/sql-array.ts";

/** States of the work on an event; docs/architecture.md draws who moves a row between them. */
export const eventStates = ["received", "applied", "stale", "ignored", "failed", "dead"] as const;
export type EventState = (typeof eventStates)[number];

/** A stored event that a worker holds for the length of its transaction. */
export interface ClaimedEvent {
  seq: number;
  eventId: string;
  raw: Buffer;
  receivedAt: Date;
  attempts: number;
  /** An earlier event has the same id and other bytes. */
  repeatsId: boolean;
}

export interface Claim {
  events: ClaimedEvent[];
  /** Locked too, but beyond the limit of bytes: for the next transaction. */
  left: number[];
}

/**
 * Locks those of the rows that are still unapplied and that no other worker holds, but for those that failed and are not
 * due yet: a job may come late, or twice, and must not use up their attempts. Reads them in the order of their arrival,
 * up to `maxBytes` of bodies but at least one: what a worker holds in memory is bounded whatever is sent. Must run in a
 * transaction; the rows are free again when it ends.
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
    const { attempts, repeats_id: repeatsId } = row;
    if (raw === null) left.push(Number(seq));
    else events.push({ seq: Number(seq), eventId, receivedAt, raw, attempts, repeatsId });
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
