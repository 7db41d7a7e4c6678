import type { ClientBase } from "pg";
import { bulkLoad } from "./bulk-load.ts";
import { idSql } from "./fill-year.ts";
import { filledYear, yearStart } from "./year.ts";

/** The share of the newest events whose bodies have their real size, 1.4 KB. Older ones have 200 bytes. */
const fullBodies = 0.2;

/**
 * Fills the inbox with a year of applied events. Of ten, seven are about an order, two about a subscription, and one
 * about a customer. All that knows how the inbox is stored is in here.
 */
export async function fillGrownInbox(
  client: ClientBase,
  { events, orders }: { events: number; orders: number },
): Promise<void> {
  await client.query("set timezone = 'UTC'");
  await client.query("set maintenance_work_mem = '1GB'");
  await client.query(`
    do $$ declare week date; begin
      for week in select generate_series(date '${yearStart}', date '${filledYear + 1}-02-01', '7 days') loop
        execute format('create table if not exists inbox.%I partition of inbox.seen for values from (%L) to (%L)',
                       'seen_' || to_char(week, 'YYYY_MM_DD'), week, week + 7);
      end loop;
    end $$`);
  const at = `timestamptz '${yearStart}' + n * interval '${Math.floor(31_536_000_000 / events)} ms'`;
  const eventType =
    "case when n % 10 < 7 then 'order.succeeded' when n % 10 < 9 then 'subscription.charged' else 'customer.created' end";
  await bulkLoad(client, ["inbox.receipts", "inbox.progress", "inbox.seen"], async () => {
    await client.query(`
      insert into inbox.receipts (seq, event_id, raw_sha256, type, api_version, event_created_at, received_at, raw, secret_id)
      select n, id, sha256(convert_to(id, 'UTF8')),
        ${eventType},
        '2025-06-01', at, at + interval '1 second',
        convert_to(repeat(md5(n::text), case when n > ${events * (1 - fullBodies)} then 44 else 6 end), 'UTF8'), 'bench'
      from generate_series(1, ${events}) n, lateral (select ${idSql("event", "n")} as id, ${at} as at) e`);
    await client.query(`
      insert into inbox.seen (created_at, body, seq)
      select ${at}, encode(substr(sha256(convert_to(${idSql("event", "n")}, 'UTF8')), 1, 16), 'hex')::uuid, n
      from generate_series(1, ${events}) n`);
    await client.query(`
      insert into inbox.progress (seq, state, attempts, resource_type, resource_id, settled_at, object_known_at,
        event_type, event_at, arrived_at)
      select n, 'applied', 1, type, id, at + interval '2 seconds', at + interval '2 seconds',
        ${eventType}, at, at + interval '1 second'
      from generate_series(1, ${events}) n, lateral (
        select ${at} as at,
          case when n % 10 < 7 then 'order' when n % 10 < 9 then 'subscription' else 'customer' end as type,
          case when n % 10 < 7 then ${idSql("order", `(1 + n::bigint * ${orders} / ${events})`)}
            when n % 10 < 9 then ${idSql("subscription", `n % ${orders / 20}`)}
            else ${idSql("customer", `n % ${orders / 4}`)} end as id
      ) e`);
    await client.query(`select setval('inbox.event_numbers', ${events})`);
    // The sweep of alerts has seen these events: otherwise a round would pay for its first scan of all of them.
    await client.query("insert into alerts.marks (name, value) values ('inbox', $1)", [
      JSON.stringify({ seq: events }),
    ]);
  });
}
