-- Reads stored rows as few texts, to see that they are equal (compare/stored-rows.ts).
-- Generated for mirror.subscriptions; test/mirror/generated-sql.test.ts holds this file against it.

select
  t.id as id,
  row(
    left(t.version, 27), t.customer_id, t.plan_id, t.status, t.amount, t.currency,
    t.current_period_start at time zone 'UTC', t.current_period_end at time zone 'UTC', t.current_billing_cycle,
    t.total_billing_cycles, t.next_billing_date at time zone 'UTC', t.start_date at time zone 'UTC',
    t.end_date at time zone 'UTC', t.canceled_at at time zone 'UTC', t.payment_method_id, t.card_brand,
    t.card_last_four, t.created_at at time zone 'UTC', t.updated_at at time zone 'UTC',
    t.source_updated_at at time zone 'UTC'
  )::text as version_columns,
  t.data as data,
  row(
    left(t.detail_version, 27), t.failure_reason, t.attempt_count, t.next_retry_at at time zone 'UTC'
  )::text as detail_version_columns,
  true and not exists (select from mirror.erasures e where e.customer_id = t.customer_id) as holds
from mirror.subscriptions t
where t.id = any($1::text[])
