-- Reads stored rows as few texts, to see that they are equal (compare/stored-rows.ts).
-- Generated for mirror.orders; test/mirror/generated-sql.test.ts holds this file against it.

select
  t.id as id,
  row(
    left(t.version, 27), t.order_number, t.customer_id, t.status, t.subtotal, t.discount_amount, t.total, t.currency,
    t.description, t.failure_code, t.failure_reason, t.subscription_id, t.subscription_cycle, t.payment_method_id,
    t.card_brand, t.card_last_four, t.coupon_code, t.created_at at time zone 'UTC', t.updated_at at time zone 'UTC',
    t.source_updated_at at time zone 'UTC'
  )::text as version_columns,
  t.data as data,
  row(
    left(t.dunning_version, 27), t.attempt_count, t.next_retry_at at time zone 'UTC'
  )::text as dunning_version_columns,
  row(left(t.items_version, 27))::text as items_version_columns,
  t.items as items,
  true and not exists (select from mirror.erasures e where e.customer_id = t.customer_id) as holds
from mirror.orders t
where t.id = any($1::text[])
