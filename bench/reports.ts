import pg from "pg";
import type { Benchmark } from "./benchmark.ts";
import { allReports } from "../src/reports/catalogue/all.ts";
import { defaultAccounts } from "../src/reports/base/account-map.ts";
import { resolvePeriod } from "../src/reports/base/period.ts";
import { readingTransaction, readReport } from "../src/reports/base/read-report.ts";
import { createDatabase } from "../src/platform/postgres/pool.ts";
import { placement } from "./support/pinning.ts";

const sizes = [100_000, 1_000_000];
const wantedMs = 5_000;
const year = { from: "2026-01-01", to: "2026-12-31" };
/** A month before the end of the history: every twelfth object has changed since. */
const asOf = "2026-12-01T00:00:00.000Z";

/** Every report over a year of orders, each read to its last row. */
export const reports: Benchmark = {
  name: "reports",
  title: `Every report over a year of ${sizes.map((n) => n.toLocaleString("en")).join(" and ")} orders`,
  async run(stand, _options, say) {
    const rows = allReports.map(({ name }): Record<string, string | number> => ({ report: name }));
    let slowest = { name: "", ms: 0 };
    for (const size of sizes) {
      await stand.withDatabase("postgres", placement.all, async ({ databaseUrl }) => {
        const client = new pg.Client({ connectionString: databaseUrl });
        await client.connect();
        say(`making ${size} orders`);
        await fillYear(client, size);
        await client.end();
        const db = createDatabase({
          url: databaseUrl,
          poolMax: 1,
          applicationName: "bench reports",
        });
        const period = await resolvePeriod(db, year, "Europe/Berlin");
        for (const [n, report] of allReports.entries()) {
          const measure = async (when: string | null) => {
            const question = {
              report,
              period,
              asOf: when,
              currency: null,
              accounts: defaultAccounts,
              region: "global" as const,
            };
            const startedAt = performance.now();
            const { rows: count } = await readingTransaction(db, (trx) =>
              readReport(trx, question, () => {}),
            );
            return { ms: performance.now() - startedAt, count };
          };
          const { ms, count } = await measure(null);
          const then = await measure(asOf);
          if (size === sizes.at(-1) && ms > slowest.ms) slowest = { name: report.name, ms };
          Object.assign(rows[n] ?? {}, {
            [`${size} rows`]: count,
            [`${size} ms`]: ms.toFixed(0),
            [`${size} ms as of`]: then.ms.toFixed(0),
          });
          say(
            `${report.name}: ${ms.toFixed(0)} ms, as of then ${then.ms.toFixed(0)} ms, ${count} rows`,
          );
        }
        await db.destroy();
      });
    }
    const target = {
      what: `slowest report over ${sizes.at(-1)} orders (${slowest.name})`,
      wanted: `< ${wantedMs} ms`,
      measured: `${slowest.ms.toFixed(0)} ms`,
      reached: slowest.ms < wantedMs,
    };
    return {
      rows,
      targets: [target],
      notes: [
        "one pass each, from the start of the transaction to the last row",
        `"as of": ${asOf}, a month before the end of the history`,
      ],
    };
  },
};

/**
 * A year of orders: 6 % declined (a third of them renewals), 12 % refunded, 1.5 % charged back, 1.2 transactions an
 * order. A sale is settled two days after its payment. The history has one state of each object, and two of settled or
 * charged-back ones. Events announced a quarter of it. Each nightly run reads a slice of each list.
 */
async function fillYear(client: pg.Client, orders: number): Promise<void> {
  await client.query(`
    create temp table made as
    select i, cast(md5('o' || i) as uuid)::text as id, cast(md5('s' || i) as uuid)::text as sale,
           cast(md5('c' || i % ${orders / 4}) as uuid)::text as customer,
           case when i % 4 = 0 then cast(md5('u' || i % ${orders / 20}) as uuid)::text end as subscription,
           timestamptz '2026-01-01' + (i * interval '1 year' / ${orders}) as at,
           case when i % 200 < 12 then 'failed' when i % 200 < 30 then 'refunded' when i % 200 < 36 then 'partially_refunded'
                when i % 200 = 36 then 'chargeback' when i % 200 = 37 then 'chargeback_accepted'
                when i % 200 = 38 then 'chargeback_dismissed' else 'succeeded' end as status,
           500 + (i::bigint * 7919) % 20000 as total, case i % 5 when 0 then 'eur' when 1 then 'jpy' else 'usd' end as currency,
           case i % 3 when 0 then 'mastercard' else 'visa' end as brand
    from generate_series(1, ${orders}) i`);
  const data = `jsonb_build_object('id', id, 'order_number', lpad(i::text, 8, '0'), 'customer_id', customer, 'status', status,
    'subtotal', total, 'discount_amount', 0, 'total', total, 'currency', currency, 'description', repeat('order ', 10),
    'payment_method', jsonb_build_object('id', sale, 'card_last_four', '4242', 'card_brand', brand),
    'shipping_address', jsonb_build_object('id', sale, 'address_line1', '1 Main Street', 'city', 'Springfield', 'country', 'US',
      'postal_code', '12345', 'state', 'IL', 'first_name', 'Jane', 'last_name', 'Doe'),
    'subscription_id', subscription, 'subscription_cycle', 2, 'metadata', '{}'::jsonb, 'created_at', at, 'updated_at', at)`;
  await client.query(`
    insert into mirror.orders (id, order_number, customer_id, status, subtotal, discount_amount, total, currency, failure_code,
      subscription_id, subscription_cycle, card_brand, card_last_four, created_at, updated_at, data, version, source_updated_at,
      content_hash, last_cause)
    select id, lpad(i::text, 8, '0'), customer, status, total, 0, total, currency,
      case when status = 'failed' then 'insufficient_funds' end, subscription, case when subscription is not null then 2 end,
      brand, '4242', at, at, ${data}, at::text, at, md5(id), 'import' from made`);
  const transaction = (
    own: string,
  ) => `jsonb_build_object('id', ${own}, 'type', type, 'status', status, 'amount', amount,
    'currency', currency, 'customer_id', customer, 'order_id', id, 'created_at', at, 'updated_at', at, 'metadata', '{}'::jsonb,
    'payment_method', jsonb_build_object('id', sale, 'card_last_four', '4242', 'card_brand', brand),
    'processor_response', jsonb_build_object('transaction_id', sale, 'response_code', '100', 'response_text', 'approved'))`;
  await client.query(`
    create temp table paid as
    select sale as own, 'sale' as type, case when status = 'failed' then 'failed'
        when status in ('chargeback', 'chargeback_accepted') then 'chargeback' else 'succeeded' end as status,
      total as amount, at, id, sale, customer, currency, brand, status <> 'failed' as settled_later,
      status <> 'failed' and at >= timestamptz '2026-12-30' as unsettled from made
    union all
    select cast(md5('r' || i || n) as uuid)::text, 'refund', 'succeeded', case status when 'refunded' then total / 2 else total / 4 end,
      at + n * interval '9 days', id, sale, customer, currency, brand, false, false
    from made, generate_series(1, 2) n where status in ('refunded', 'partially_refunded')`);
  await client.query(`
    insert into mirror.transactions (id, type, status, amount, currency, customer_id, order_id, card_brand, created_at, updated_at,
      data, version, source_updated_at, content_hash, last_cause)
    select own, type, status, amount, currency, customer, id, brand, at, changed_at, ${transaction("own")}, changed_at::text,
      changed_at, md5(own), 'import'
    from (
      select *, case when settles then at + interval '2 days' else at end as changed_at from (
        select own, type, case when unsettled then 'pending' else status end as status, amount, at, id, sale, customer, currency,
          brand, settled_later and not unsettled as settles from paid
      ) settled
    ) p`);
  await client.query(`
    insert into mirror.versions
      (resource, id, source_updated_at, content_hash, observed_at, cause, data, recorded_at)
    select h.*, h.source_updated_at + interval '1 minute' from (
    select 'order' as resource, id, case when status like 'chargeback_%' then at + interval '40 days' else at end as source_updated_at,
      md5(id), at, 'import', ${data}
    from made
    union all
    select 'order', id, at + interval '20 days', md5(id), at, 'import', jsonb_build_object('status', 'chargeback') from made
    where status in ('chargeback_accepted', 'chargeback_dismissed')
    union all
    select 'transaction', own, case when settled_later then at + interval '2 days' else at end, md5(own), at, 'import',
      ${transaction("own")}
    from paid where not unsettled
    union all
    select 'transaction', own, at, md5('p' || own), at, 'import', ${transaction("own")} || '{"status": "pending"}'
    from paid where settled_later
    union all
    select 'subscription', cast(md5('u' || i) as uuid)::text, timestamptz '2026-01-01' + n * interval '40 days', md5(i::text), null, 'import',
      jsonb_build_object('status', case when n = 2 and i % 9 = 0 then 'canceled' when n = 2 and i % 7 = 0 then 'past_due' else 'active' end,
        'created_at', timestamptz '2026-01-01', 'plan', jsonb_build_object('amount', 2900, 'currency', 'usd'),
        'billing_cycle', jsonb_build_object('interval', 'month', 'interval_count', 1))
    from generate_series(1, ${orders / 20}) i, generate_series(1, 2) n
    ) h order by 3`);
  // The initial import was at the end of September. Of later changes, nine in ten came by an event.
  await client.query(
    `insert into reconcile.runs (run_key, kind, t0, state, first_fill) values ('fill', 'import', '2026-10-01', 'complete', true)`,
  );
  // One slice a night, as far back as the rotation goes, and the sums of the days in it.
  await client.query(`
    with run as (
      insert into reconcile.runs (run_key, kind, t0, state, started_at, finished_at)
      select 'night ' || n, 'nightly', d, 'complete', d, d
      from generate_series(1, 365) n, lateral (select timestamptz '2026-01-01' + n * interval '1 day' as d) day
      returning id, t0
    ), slice as (
      insert into reconcile.coverage (run, slice, step, resource, path, filter, reason, created_from, created_before, state, is_closed,
        pages, read_at)
      select r.id, s.n, 'recent', s.resource, s.resource, '{}', 'bench', r.t0 - interval '3 days', r.t0, 'complete', true, 1, r.t0
      from run r, unnest(array['order', 'transaction', 'subscription', 'customer']) with ordinality s(resource, n)
    )
    insert into reconcile.daily_sums (run, slice, day, currency, type, status, n, sum_minor)
    select r.id, 2, (r.t0 - d * interval '1 day')::date, c, 'sale', s, 10, 10000
    from run r, generate_series(1, 2) d, unnest(array['usd', 'eur', 'jpy']) c, unnest(array['succeeded', 'failed']) s`);
  await client.query(`
    with receipt as (
      insert into inbox.receipts (event_id, raw_sha256, type, event_created_at, received_at, raw, secret_id)
      select id, sha256(convert_to(id, 'UTF8')),
        case status when 'succeeded' then 'order.succeeded' when 'failed' then 'order.failed' else 'order.refunded' end,
        at, at + interval '1 second', convert_to(repeat('order ', 200), 'UTF8'), 'bench'
      from made where at >= '2026-10-01' and i % 10 <> 0
      returning seq, event_id)
    insert into inbox.progress (seq, state, resource_type, resource_id)
    select seq, 'applied', 'order', event_id from receipt`);
  await client.query(
    "vacuum (analyze) mirror.orders, mirror.transactions, mirror.versions, inbox.receipts, inbox.progress, reconcile.coverage",
  );
}
