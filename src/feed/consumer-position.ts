import type { Knex } from "knex";

/**
 * Notes how far a reader has come: all changes up to the position were handled, and the feed may remove them. Needs the
 * transaction that handled them.
 */
export async function keepConsumerPosition(
  trx: Knex.Transaction,
  { name, position }: { name: string; position: number },
): Promise<void> {
  await trx.raw(
    `insert into feed.consumers (name, position) values (?, ?)
     on conflict (name) do update set position = excluded.position, moved_at = now()`,
    [name, position],
  );
}
