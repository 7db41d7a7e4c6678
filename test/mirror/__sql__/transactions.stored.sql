-- Reads stored rows as few texts, to see that they are equal (compare/stored-rows.ts).
-- Generated for mirror.transactions; test/mirror/generated-sql.test.ts holds this file against it.

select
  t.id as id,
  row(left(t.version, 27), t.source_updated_at at time zone 'UTC')::text as version_columns,
  t.data as data,
  row(left(t.inline_version, 27), t.attempt_count)::text as inline_version_columns,
  t.inline as inline,
  row(
    t.type, t.amount, t.currency, t.customer_id, t.failure_reason, t.payment_method_id, t.card_brand, t.card_last_four,
    t.created_at at time zone 'UTC', t.updated_at at time zone 'UTC'
  )::text as shared_columns,
  t.version <> '' as has_core,
  true and t.status is not distinct from (left(t.data ->> 'status', 40)) as shown_hold,
  true
  and t.status is not distinct from (
    case
      when greatest(
        left(t.inline_version, 27) collate "C", substr(t.inline_version, 57, 27)
      ) || substr(t.inline_version, 29, 27) > greatest(
        left(t.version, 27) collate "C", substr(t.version, 29, 27)
      ) || left(t.version, 27)
        then left(t.inline ->> 'status', 40)
      else left(t.data ->> 'status', 40)
    end
  )
  and t.order_id is not distinct from (coalesce(t.data ->> 'order_id', t.inline ->> 'order_id'))
  and t.failure_code is not distinct from (coalesce(t.data ->> 'failure_code', t.inline ->> 'failure_code'))
  and t.processor_transaction_id is not distinct from (
    coalesce(t.inline ->> 'processor_transaction_id', t.data -> 'processor_response' ->> 'transaction_id')
  )
  and not exists (select from mirror.erasures e where e.customer_id = t.customer_id) as holds
from mirror.transactions t
where t.id = any($1::text[])
