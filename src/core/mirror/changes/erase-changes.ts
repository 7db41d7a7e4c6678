import type { Knex } from "knex";
import { sqlArray } from "../../../platform/postgres/values.ts";
import { type NewHashes, newHashOf } from "../privacy/erase-mirror.ts";
import { recordErasure } from "./record-changes.ts";

/**
 * The numbers of all changes of these objects that name a state. Reads the whole feed, so outside of the erasure's
 * transaction, after `markErased`: later writes name redacted states.
 */
export async function changesOf(db: Knex, ids: readonly string[]): Promise<number[]> {
  const seqs = await db("feed.changes")
    .whereRaw("id = any(?::text[]) and state_hash is not null", [sqlArray(ids)])
    .orderBy("seq")
    .pluck<string[]>("seq");
  return seqs.map(Number);
}

/**
 * Lets changes name the redacted states in place of those that an erasure has replaced. The former hash must not stay:
 * it matches no state any more, and where little of the content is unknown, the content could be guessed from it. Then
 * records the erasure in the feed, only once. Follows the redaction of the rows. Needs its transaction; idempotent.
 */
export async function eraseChanges(
  trx: Knex.Transaction,
  { customerId, seqs, hashes }: { customerId: string; seqs: readonly number[]; hashes: NewHashes },
): Promise<void> {
  const rows = await trx("feed.changes")
    .whereRaw("seq = any(?::bigint[])", [sqlArray(seqs)])
    .select<{ seq: string; state_group: string; id: string; state_hash: string }[]>(
      "seq",
      "state_group",
      "id",
      "state_hash",
    );
  const replaced = rows.flatMap(({ seq, state_group: group, id, state_hash: former }) => {
    const hash = newHashOf(hashes, group, id, former);
    return hash === undefined ? [] : [{ seq, hash }];
  });
  await trx.raw(
    `update feed.changes c set state_hash = r.hash from unnest(?::bigint[], ?::text[]) as r(seq, hash)
     where c.seq = r.seq`,
    [sqlArray(replaced.map(({ seq }) => seq)), sqlArray(replaced.map(({ hash }) => hash))],
  );
  await recordErasure(trx, customerId);
}
