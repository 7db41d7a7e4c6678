import type { Knex } from "knex";

const keptDays = 60;
const batchSize = 5_000;

/**
 * Forgets the reads of open items, and of rows that no list shows, that were concluded two months ago: every night
 * makes many of them, without a lasting effect. No report as of any time changes by it: such a read is no hole in a
 * proof, and while it was open its own run had not ended, and so did not count. One of those that a run did not reach
 * stays: it marks that the run never counts. Differing reads are never deleted: while they were open, they were holes
 * in earlier runs' proofs. One statement a batch, each a transaction of its own; idempotent. Returns the number of
 * rows.
 */
export async function forgetRechecks(
  db: Knex,
  { now, stopping }: { now: Date; stopping?: AbortSignal },
): Promise<number> {
  const before = new Date(now.getTime() - keptDays * 86_400_000);
  for (let forgotten = 0; ;) {
    const { rowCount } = await db.raw<{ rowCount: number }>(
      `delete from reconcile.doubts where (run, resource, id) in (
         select d.run, d.resource, d.id from reconcile.doubts d
         where d.settled_at < ? and d.state = 'settled' and reconcile.is_routine_read(d.why)
           and d.outcome <> 'unreadable'
           and (d.outcome not like 'left to run %' or exists (
             select from reconcile.doubts e
             where e.run = d.run and reconcile.is_routine_read(e.why) and e.outcome like 'left to run %'
               and (e.recorded_at, e.resource, e.id) < (d.recorded_at, d.resource, d.id)))
           and not exists (
             select from reconcile.run_states s
             where s.run = d.run and s.has_ended and s.recorded_at < d.settled_at)
         limit ?)`,
      [before, batchSize],
    );
    forgotten += rowCount;
    if (rowCount < batchSize || stopping?.aborted === true) return forgotten;
  }
}
