import type { Knex } from "knex";
import { sqlArray } from "../platform/sql-array.ts";

/** A stored event that a worker holds for the length of its transaction. */
export interface ClaimedEvent {
  seq: number;
  eventId: string;
  raw: Buffer;
  attempts: number;
}

/**
 * Locks those of the rows that are still unapplied and that no other worker holds, in the order of their
 * arrival. Must run in a transaction; the rows are free again when it ends.
 */
export async function claimEvents(
  trx: Knex.Transaction,
  seqs: readonly number[],
): Promise<ClaimedEvent[]> {
  const { rows } = await trx.raw<{ rows: ClaimedRow[] }>(
    `select p.seq, p.attempts, r.event_id, r.raw
     from inbox.progress p join inbox.receipts r using (seq)
     where p.seq = any(?::bigint[]) and p.state in ('received', 'failed') and r.raw is not null
     order by p.seq for update of p skip locked`,
    [sqlArray(seqs)],
  );
  return rows.map((row) => ({
    seq: Number(row.seq),
    eventId: row.event_id,
    raw: row.raw,
    attempts: row.attempts,
  }));
}

interface ClaimedRow {
  seq: string;
  attempts: number;
  event_id: string;
  raw: Buffer;
}
