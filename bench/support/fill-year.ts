import type { ClientBase } from "pg";
import { bulkLoad } from "./bulk-load.ts";
import { fillSeed, filledYear, orderStepMs, yearStart } from "./year.ts";

/** SQL of an id of the sample events' form (`uuid` in bench/load), from a kind and SQL for a number. */
export const idSql = (kind: string, n: string): string =>
  `overlay(overlay(md5('${fillSeed}:${kind}:' || ${n}) placing '4' from 13) placing 'a' from 17)::uuid::text`;

const sqlWords = (list: string): string => `array['${list.split(" ").join("', '")}']`;

/** Customer `n`'s name: one in ten is called Smith, the others by 8,000 names of two syllables and an ending. */
const firstNameSql = (n: string): string =>
  `(${sqlWords("Ada Ben Carla David Emma Frances Grace Hugo Ines John Karin Liam Maria Noor Otto Paula Rosa Sven Tara Uma")})[1 + ${n} % 20]`;
const lastNameSql = (n: string): string =>
  `case when ${n} % 10 = 3 then 'Smith' else
     (${sqlWords("Al Bar Cor Dun El Fitz Gar Hal In Jor Kel Lam Mor Nor Os Pen Rit Sal Tor Wil")})[1 + ${n} / 10 % 20] ||
     (${sqlWords("a be chi do en fre go ha is ken")})[1 + ${n} / 200 % 10] ||
     (${sqlWords("ber ckson dell e ford gan hill ker ley man nett per quist rie son ton vers ward young zel")})[1 + ${n} / 2000 % 20] end`;
/** Addresses with a name in them, and every third one without. */
const emailSql = (n: string): string =>
  `case when ${n} % 3 = 0 then 'buyer-' || ${n} || '@example.com'
     else lower(${firstNameSql(n)} || '.' || ${lastNameSql(n)}) || ${n} || '@mail.example' end`;

const iso = (at: string): string => `to_char(${at} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
const versionTime = (at: string): string => `to_char(${at} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

/**
 * Fills an empty mirror with a year of orders: 6 % declined (a third of them renewals), 12 % refunded, 1.5 % charged
 * back, 1.2 transactions an order; a quarter as many customers, a twentieth as many subscriptions. A sale is settled
 * two days after its payment. The history has one state of each object, and two of settled or charged-back ones. Each
 * nightly run reads a slice of each list. The orders are those of `yearOrder`.
 */
export async function fillYear(client: ClientBase, orders: number, say: (line: string) => void): Promise<void> {
  const step = async (what: string, run: () => Promise<unknown>) => {
    const startMs = performance.now();
    await run();
    say(`${what}: ${((performance.now() - startMs) / 1000).toFixed(0)} s`);
  };
  await client.query("set timezone = 'UTC'");
  await client.query("set maintenance_work_mem = '1GB'; set work_mem = '512MB'");
  await step("numbers", () => makeNumbers(client, orders));
  await step("orders", () => fillOrders(client));
  await step("transactions", () => fillTransactions(client));
  await step("customers, subscriptions", () => fillCustomers(client, orders));
  await step("history", () => fillHistory(client, orders));
  await step("runs", () => fillRuns(client));
}

/** Fills only the orders of such a year. */
export async function fillYearOfOrders(client: ClientBase, orders: number): Promise<void> {
  await client.query("set timezone = 'UTC'");
  await makeNumbers(client, orders);
  await fillOrders(client);
}

async function makeNumbers(client: ClientBase, orders: number): Promise<void> {
  await client.query(`
    create temp table made as
    select i, ${idSql("order", "i")} as id, ${idSql("transaction", "i")} as sale, ${idSql("card", "i")} as card,
           ${idSql("customer", `i % ${orders / 4}`)} as customer,
           case when i % 4 = 0 then ${idSql("subscription", `i % ${orders / 20}`)} end as subscription,
           timestamptz '${yearStart}' + i * interval '${orderStepMs(orders)} ms' as at,
           case when i % 200 < 12 then 'failed' when i % 200 < 30 then 'refunded' when i % 200 < 36 then 'partially_refunded'
                when i % 200 = 36 then 'chargeback' when i % 200 = 37 then 'chargeback_accepted'
                when i % 200 = 38 then 'chargeback_dismissed' else 'succeeded' end as status,
           500 + (i::bigint * 7919) % 20000 as total, case i % 5 when 0 then 'eur' when 1 then 'jpy' else 'usd' end as currency,
           case i % 3 when 0 then 'mastercard' else 'visa' end as brand
    from generate_series(1, ${orders}) i`);
  await client.query("analyze made");
}

const paymentMethod = `jsonb_build_object('id', card, 'card_last_four', '4242', 'card_brand', brand)`;

const address = `jsonb_build_object('id', card, 'first_name', 'Ada', 'last_name', 'Beispiel', 'address_line1', '12 Harbour Street',
  'city', 'Portland', 'state', 'OR', 'postal_code', '97201', 'country', 'US')`;

const orderData = `jsonb_strip_nulls(jsonb_build_object('id', id, 'order_number', lpad(i::text, 8, '0'), 'customer_id', customer,
  'status', status, 'subtotal', total, 'discount_amount', 0, 'total', total, 'currency', currency,
  'payment_method', ${paymentMethod}, 'shipping_address', ${address}, 'subscription_id', subscription,
  'subscription_cycle', case when subscription is not null then 2 end,
  'failure_code', case when status = 'failed' then 'insufficient_funds' end,
  'metadata', jsonb_build_object('source', 'checkout'), 'created_at', ${iso("at")}, 'updated_at', ${iso("at")}))`;

async function fillOrders(client: ClientBase): Promise<void> {
  await bulkLoad(client, ["mirror.orders"], async () => {
    await client.query(`
    insert into mirror.orders (id, order_number, customer_id, status, subtotal, discount_amount, total, currency, failure_code,
      subscription_id, subscription_cycle, payment_method_id, card_brand, card_last_four, created_at, updated_at, data, version,
      source_updated_at, content_hash, items, items_version, last_cause)
    select id, lpad(i::text, 8, '0'), customer, status, total, 0, total, currency,
      case when status = 'failed' then 'insufficient_funds' end, subscription, case when subscription is not null then 2 end,
      card, brand, '4242', at, at, ${orderData}, version, at, md5(id),
      (select jsonb_agg(jsonb_build_object('id', card || '-' || line, 'product_id', 'product-' || line,
        'name', 'Ethiopia, 250 g, whole beans', 'quantity', line, 'price', 1700, 'total', 1700 * line))
       from generate_series(1, 2) line), version, 'import'
    from made, lateral (select ${versionTime("at")} || '|-|3|' || md5(id) as version) v`);
  });
}

const transactionData = (
  own: string,
) => `jsonb_build_object('id', ${own}, 'type', type, 'status', status, 'amount', amount,
  'currency', currency, 'customer_id', customer, 'order_id', id, 'created_at', ${iso("at")}, 'updated_at', ${iso("at")},
  'metadata', '{}'::jsonb, 'payment_method', ${paymentMethod},
  'processor_response', jsonb_build_object('transaction_id', own, 'response_code', '100', 'response_text', 'approved'))`;

async function fillTransactions(client: ClientBase): Promise<void> {
  await client.query(`
    create temp table paid as
    select sale as own, 'sale' as type, case when status = 'failed' then 'failed'
        when status in ('chargeback', 'chargeback_accepted') then 'chargeback' else 'succeeded' end as status,
      total as amount, at, id, card, customer, currency, brand, status <> 'failed' as settled_later,
      status <> 'failed' and at >= timestamptz '${filledYear}-12-28' as unsettled from made
    union all
    select ${idSql("refund", "i || ':' || n")}, 'refund', 'succeeded',
      case status when 'refunded' then total / 2 else total / 4 end, at + n * interval '9 days', id, card, customer, currency,
      brand, false, false
    from made, generate_series(1, 2) n where status in ('refunded', 'partially_refunded')`);
  await client.query("analyze paid");
  await bulkLoad(client, ["mirror.transactions"], async () => {
    await client.query(`
    insert into mirror.transactions (id, type, status, amount, currency, customer_id, order_id, payment_method_id, card_brand,
      card_last_four, created_at, updated_at, data, version, source_updated_at, content_hash, inline, inline_version, last_cause)
    select own, type, status, amount, currency, customer, id, card, brand, '4242', at, changed_at, ${transactionData("own")},
      ${versionTime("changed_at")} || '|-|3|' || md5(own), changed_at, md5(own),
      jsonb_build_object('id', own, 'type', type, 'status', status, 'amount', amount, 'order_id', id,
        'processor_transaction_id', own), ${versionTime("at")} || '|' || ${versionTime("at")} || '|-|3|' || md5(own), 'import'
    from (
      select *, case when settles then at + interval '2 days' else at end as changed_at from (
        select own, type, case when unsettled then 'pending' else status end as status, amount, at, id, card, customer, currency,
          brand, settled_later and not unsettled as settles from paid
      ) settled
    ) p`);
  });
}

async function fillCustomers(client: ClientBase, orders: number): Promise<void> {
  await bulkLoad(client, ["mirror.customers", "mirror.subscriptions"], async () => {
    await client.query(`
    insert into mirror.customers (id, email, first_name, last_name, phone, created_at, updated_at, data, version,
      source_updated_at, content_hash, last_cause)
    select id, email, first, last, '+1555' || lpad(i::text, 8, '0'), at, at,
      jsonb_build_object('id', id, 'email', email, 'first_name', first, 'last_name', last,
        'phone', '+1555' || lpad(i::text, 8, '0'), 'metadata', jsonb_build_object('source', 'checkout'), 'created_at', ${iso("at")},
        'updated_at', ${iso("at")}), ${versionTime("at")} || '|-|4|' || md5(id), at, md5(id), 'import'
    from generate_series(0, ${orders / 4 - 1}) i,
      lateral (select ${idSql("customer", "i")} as id, ${emailSql("i")} as email, ${firstNameSql("i")} as first,
        ${lastNameSql("i")} as last, timestamptz '${yearStart}' + i * interval '${orderStepMs(orders / 4)} ms' as at) c`);
    await client.query(`
    insert into mirror.subscriptions (id, customer_id, status, amount, currency, current_billing_cycle, created_at, updated_at,
      data, version, source_updated_at, content_hash, last_cause)
    select id, customer, 'active', 2900, 'usd', 2, at, at,
      jsonb_build_object('id', id, 'customer_id', customer, 'status', 'active', 'plan', jsonb_build_object('amount', 2900,
        'currency', 'usd'), 'billing_cycle', jsonb_build_object('interval', 'month', 'interval_count', 1),
        'current_billing_cycle', 2, 'created_at', ${iso("at")}, 'updated_at', ${iso("at")}),
      ${versionTime("at")} || '|-|3|' || md5(id), at, md5(id), 'import'
    from generate_series(0, ${orders / 20 - 1}) i,
      lateral (select ${idSql("subscription", "i")} as id, ${idSql("customer", "i")} as customer,
        timestamptz '${yearStart}' as at) c`);
  });
}

/** In order of time, as events arrive. */
async function fillHistory(client: ClientBase, orders: number): Promise<void> {
  await bulkLoad(client, ["mirror.versions"], async () => {
    await client.query(`
    insert into mirror.versions
      (resource, id, source_updated_at, content_hash, observed_at, cause, data, recorded_at)
    select h.*, h.source_updated_at + interval '1 minute' from (
    select 'order' as resource, id, case when status like 'chargeback_%' then at + interval '40 days' else at end
      as source_updated_at, md5(id), at, 'import', ${orderData}
    from made
    union all
    select 'order', id, at + interval '20 days', md5(id), at, 'import', jsonb_build_object('status', 'chargeback') from made
    where status in ('chargeback_accepted', 'chargeback_dismissed')
    union all
    select 'transaction', own, case when settled_later then at + interval '2 days' else at end, md5(own), at, 'import',
      ${transactionData("own")}
    from paid where not unsettled
    union all
    select 'transaction', own, at, md5('p' || own), at, 'import', ${transactionData("own")} || '{"status": "pending"}'
    from paid where settled_later
    union all
    select 'subscription', ${idSql("subscription", "i")}, timestamptz '${yearStart}' + n * interval '40 days', md5(i::text), null,
      'import',
      jsonb_build_object('status', case when n = 2 and i % 9 = 0 then 'canceled' when n = 2 and i % 7 = 0 then 'past_due'
          else 'active' end, 'created_at', timestamptz '${yearStart}', 'plan', jsonb_build_object('amount', 2900, 'currency', 'usd'),
        'billing_cycle', jsonb_build_object('interval', 'month', 'interval_count', 1))
    from generate_series(0, ${orders / 20 - 1}) i, generate_series(1, 2) n
    ) h order by 3`);
  });
}

/** The initial import was at the end of September. One slice of each list a night, and the sums of the days in it. */
async function fillRuns(client: ClientBase): Promise<void> {
  await client.query(
    `insert into reconcile.runs (run_key, kind, t0, state, first_fill)
     values ('fill', 'import', '${filledYear}-10-01', 'complete', true)`,
  );
  await client.query(`
    with run as (
      insert into reconcile.runs (run_key, kind, t0, state, started_at, finished_at)
      select 'night ' || n, 'nightly', d, 'complete', d, d
      from generate_series(1, 365) n, lateral (select timestamptz '${yearStart}' + n * interval '1 day' as d) day
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
  await client.query("vacuum (analyze) reconcile.runs, reconcile.coverage, reconcile.daily_sums");
}
