import type { Knex } from "knex";

/** Writes a change of an order, as a transaction of that time would have, and gives back its number. */
export async function storeChange(
  db: Knex,
  { recordedAt, id = "order-1" }: { recordedAt: Date; id?: string },
): Promise<number> {
  const { rows } = await db.raw<{ rows: [{ seq: string }] }>(
    `insert into feed.changes (seq, resource, id, kind, cause, recorded_at)
     values (nextval('feed.change_numbers'), 'order', ?, 'order.updated', 'fetch', ?) returning seq`,
    [id, recordedAt],
  );
  return Number(rows[0].seq);
}
