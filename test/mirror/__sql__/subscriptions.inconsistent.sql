-- Finds rows with columns that no state explains (compare/hand-edited-rows.ts).
-- Generated for mirror.subscriptions; test/mirror/generated-sql.test.ts holds this file against it.

select cast($1 as text) as resource, id, columns
from
  (
    select
      t.id,
      array_remove(
        array[
          case when left(t.version, 27) > $2 then 'version' end,
          case when t.version = '' and t.customer_id is not null then 'customer_id' end,
          case when t.version = '' and t.plan_id is not null then 'plan_id' end,
          case when t.version = '' and t.status is not null then 'status' end,
          case when t.version = '' and t.amount is not null then 'amount' end,
          case when t.version = '' and t.currency is not null then 'currency' end,
          case when t.version = '' and t.current_period_start is not null then 'current_period_start' end,
          case when t.version = '' and t.current_period_end is not null then 'current_period_end' end,
          case when t.version = '' and t.current_billing_cycle is not null then 'current_billing_cycle' end,
          case when t.version = '' and t.total_billing_cycles is not null then 'total_billing_cycles' end,
          case when t.version = '' and t.next_billing_date is not null then 'next_billing_date' end,
          case when t.version = '' and t.start_date is not null then 'start_date' end,
          case when t.version = '' and t.end_date is not null then 'end_date' end,
          case when t.version = '' and t.canceled_at is not null then 'canceled_at' end,
          case when t.version = '' and t.payment_method_id is not null then 'payment_method_id' end,
          case when t.version = '' and t.card_brand is not null then 'card_brand' end,
          case when t.version = '' and t.card_last_four is not null then 'card_last_four' end,
          case when t.version = '' and t.created_at is not null then 'created_at' end,
          case when t.version = '' and t.updated_at is not null then 'updated_at' end,
          case when t.version = '' and t.data is not null then 'data' end,
          case when left(t.detail_version, 27) > $3 then 'detail_version' end,
          case when t.detail_version = '' and t.failure_reason is not null then 'failure_reason' end,
          case when t.detail_version = '' and t.attempt_count is not null then 'attempt_count' end,
          case when t.detail_version = '' and t.next_retry_at is not null then 'next_retry_at' end,
          case when t.version <> '' and t.content_hash is distinct from right(t.version, 32) then 'content_hash' end,
          case when t.deleted_at is not null then 'deleted_at' end
        ]::text[],
        null
      ) as columns
    from mirror.subscriptions t
    where cast($4 as text) is null or t.id > $5
  ) checked
where cardinality(columns) > 0
order by id
limit $6
