import type { Knex } from "knex";
import { sqlArray } from "../platform/sql-array.ts";

/** Of these events those whose bytes are gone: nothing is left of them that could be applied. One statement. */
export async function listPruned(
  db: Knex,
  seqs: readonly number[],
): Promise<{ seq: number; eventId: string }[]> {
  const { rows } = await db.raw<{ rows: { seq: string; event_id: string }[] }>(
    "select seq, event_id from inbox.receipts where seq = any(?::bigint[]) and raw is null order by seq",
    [sqlArray(seqs)],
  );
  return rows.map(({ seq, event_id: eventId }) => ({ seq: Number(seq), eventId }));
}

/**
 * Puts events back to `received`, to be applied again through the same path. Only rows whose bytes are still
 * there: a prune under way is waited for. Gives back their sequence numbers. Idempotent: applying an event twice
 * changes nothing.
 */
export async function replayEvents(db: Knex, seqs: readonly number[]): Promise<number[]> {
  const { rows } = await db.raw<{ rows: { seq: string }[] }>(
    `with kept as materialized (
       select seq from inbox.progress p join inbox.receipts r using (seq)
       where seq = any(?::bigint[]) and r.raw is not null order by seq for update of p, r
     )
     update inbox.progress p
     set state = 'received', attempts = 0, next_attempt_at = null, relayed_at = null, reason = null, settled_at = null
     from kept where p.seq = kept.seq returning p.seq`,
    [sqlArray(seqs)],
  );
  return rows.map(({ seq }) => Number(seq));
}

/**
 * Empties the bytes of up to `limit` applied, stale or ignored events received more than `days` ago, and says
 * how many. The rows stay: they are the memory against replays. What is not applied is never touched, nor what is
 * about to be replayed.
 */
export async function pruneEvents(
  db: Knex,
  { days, limit }: { days: number; limit: number },
): Promise<number> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `with old as materialized (
       select r.seq from inbox.receipts r join inbox.progress p using (seq)
       where r.received_at < now() - make_interval(days => ?) and r.raw is not null
         and p.state in ('applied', 'stale', 'ignored')
       order by r.seq limit ? for update of p, r skip locked
     )
     update inbox.receipts r set raw = null from old where r.seq = old.seq`,
    [days, limit],
  );
  return rowCount;
}

/** How many events `pruneEvents` would empty in all. */
export async function countPrunable(db: Knex, days: number): Promise<number> {
  const { rows } = await db.raw<{ rows: { n: string }[] }>(
    `select count(*) as n from inbox.receipts r join inbox.progress p using (seq)
     where r.received_at < now() - make_interval(days => ?) and r.raw is not null
       and p.state in ('applied', 'stale', 'ignored')`,
    [days],
  );
  return Number(rows[0]?.n ?? 0);
}
