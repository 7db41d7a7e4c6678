import type { Knex } from "knex";
import { sqlArray } from "../platform/sql-array.ts";

/**
 * The numbers of all events that bear each of these ids, in the order of their arrival: more than one where the
 * service sent other bytes under the same id.
 */
export async function seqsOfIds(
  db: Knex,
  eventIds: readonly string[],
): Promise<Map<string, number[]>> {
  const { rows } = await db.raw<{ rows: { event_id: string; seqs: string[] }[] }>(
    `select event_id, array_agg(seq order by seq) as seqs from inbox.receipts
     where event_id = any(?::text[]) group by event_id`,
    [sqlArray(eventIds)],
  );
  return new Map(rows.map(({ event_id, seqs }) => [event_id, seqs.map(Number)]));
}
