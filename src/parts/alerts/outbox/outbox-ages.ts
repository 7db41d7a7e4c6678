import type { Knex } from "knex";
import { sqlArray } from "../../../platform/postgres/values.ts";

/**
 * For how long the oldest message that is due has been due, in seconds, by channel; 0 where none is. By the database's
 * clock. One index read for each channel.
 */
export async function readOutboxAges(
  db: Knex,
  channels: readonly string[],
): Promise<{ channel: string; ageSeconds: number }[]> {
  const { rows } = await db.raw<{ rows: { channel: string; age: number }[] }>(
    `select c.channel, coalesce(extract(epoch from now() - (
        select o.due_at from alerts.outbox o
        where o.state = 'pending' and o.channel = c.channel and o.due_at <= now() order by o.due_at limit 1
      )), 0)::float8 as age
     from unnest(?::text[]) c(channel)`,
    [sqlArray(channels)],
  );
  return rows.map(({ channel, age }) => ({ channel, ageSeconds: age }));
}

/** How many alerts are not resolved, by severity; those beyond `most` are not counted. One statement. */
export async function countUnresolved(
  db: Knex,
  { most }: { most: number },
): Promise<{ severity: string; n: number }[]> {
  const { rows } = await db.raw<{ rows: { severity: string; n: string }[] }>(
    `select severity, count(*) as n
     from (select severity from alerts.alerts where state <> 'resolved' limit ?) unresolved group by severity`,
    [most],
  );
  return rows.map(({ severity, n }) => ({ severity, n: Number(n) }));
}
