import type { Knex } from "knex";
import { sqlArray } from "../platform/sql-array.ts";

const batchSize = 200;

/** Events about one person. */
export interface BodiesOf {
  /** Stands in the bytes. */
  text: string;
  /** What the events are about, where the text does not stand in them. */
  resourceIds: readonly string[];
}

/**
 * Rewrites the stored bytes of every event about a person, and says how many there were. `rewrite`
 * gives the new bytes; null empties them, as a prune does. For the erasure of a person. Reads the whole inbox; commits in batches, so that a run after a crash goes on. Idempotent.
 */
export async function rewriteBodies(
  db: Knex,
  { text, resourceIds }: BodiesOf,
  rewrite: (raw: Buffer) => Buffer | null,
): Promise<number> {
  const { rows } = await db.raw<{ rows: { seq: string }[] }>(
    `select r.seq from inbox.receipts r
     where r.raw is not null
       and (position(convert_to(?, 'UTF8') in r.raw) > 0
            or r.seq in (select seq from inbox.progress where resource_id = any(?::text[])))
     order by r.seq`,
    [text, sqlArray(resourceIds)],
  );
  for (let from = 0; from < rows.length; from += batchSize) {
    const seqs = rows.slice(from, from + batchSize).map(({ seq }) => seq);
    await db.transaction((trx) => rewriteBatch(trx, seqs, rewrite));
  }
  return rows.length;
}

/**
 * Rewrites the stored bytes of these events, but where `rewrite` gives back the very bytes. What arrived is changed for
 * two reasons only: a person is erased, or a card number is masked; `raw_sha256` stays that of what arrived. Locks
 * the rows: needs a transaction.
 */
export async function rewriteBatch(
  trx: Knex.Transaction,
  seqs: readonly string[],
  rewrite: (raw: Buffer, seq: string) => Buffer | null,
): Promise<void> {
  const rows = await trx<{ seq: string; raw: Buffer | null }>("inbox.receipts")
    .whereIn("seq", seqs)
    .orderBy("seq")
    .forUpdate()
    .select("seq", "raw");
  for (const { seq, raw } of rows) {
    const rewritten = raw === null ? null : rewrite(raw, seq);
    if (rewritten === raw) continue;
    await trx("inbox.receipts").where({ seq }).update({ raw: rewritten });
  }
}
