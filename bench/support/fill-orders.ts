import type { Client } from "pg";

/**
 * Fills the mirror with the orders of `servers/generated-orders.ts`, as if they had been applied from events. An import
 * of a million takes minutes, this takes seconds.
 */
export async function fillOrders(client: Pick<Client, "query">, count: number): Promise<void> {
  await client.query(
    `insert into mirror.orders (
       id, order_number, customer_id, status, subtotal, discount_amount, total, currency, payment_method_id, card_brand,
       card_last_four, created_at, updated_at, source_updated_at, data, items, version, items_version, content_hash, last_cause)
     select g.id, g.number, g.customer, 'succeeded', g.total, 0, g.total, 'usd', g.card, 'visa', '4242', g.at, g.at, g.at,
       jsonb_build_object('id', g.id, 'order_number', g.number, 'customer_id', g.customer, 'status', 'succeeded',
         'subtotal', g.total, 'discount_amount', 0, 'total', g.total, 'currency', 'usd',
         'payment_method', jsonb_build_object('id', g.card, 'card_last_four', '4242', 'card_brand', 'visa'),
         'shipping_address', jsonb_build_object('id', 'address-' || g.n % 997, 'first_name', 'Ada', 'last_name', 'Lovelace',
           'address_line1', '1 Main Street', 'city', 'Springfield', 'state', 'IL', 'postal_code', '62701', 'country', 'US'),
         'metadata', jsonb_build_object('cart', 'cart-' || g.n, 'campaign', 'spring'),
         'created_at', g.iso, 'updated_at', g.iso),
       jsonb_build_array(jsonb_build_object('product_id', 'product-' || g.n % 31, 'name', 'A product', 'quantity', 2,
         'price', trim_scale(g.total / 2.0))),
       g.version, g.version, '', 'event:1'
     from (
       select n, '00000000-0000-4000-8000-' || lpad(n::text, 12, '0') as id, 'N' || lpad((n % 10000000)::text, 7, '0') as number,
         'customer-' || n % 997 as customer, 'card-' || n % 997 as card, 1000 + n % 9000 as total, t.at,
         to_char(t.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as iso,
         to_char(t.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '|-|3|' as version
       from generate_series(0, $1::integer - 1) as n,
         lateral (select timestamptz '2024-01-01T00:00:00Z' + n * interval '1 second') as t(at)
     ) g`,
    [count],
  );
  // As autovacuum would. Otherwise the first read of the table would also write all its pages.
  await client.query("vacuum (analyze) mirror.orders");
}
