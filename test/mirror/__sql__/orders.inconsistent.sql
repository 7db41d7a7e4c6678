-- Finds rows with columns that no state explains (compare/hand-edited-rows.ts).
-- Generated for mirror.orders; test/mirror/generated-sql.test.ts holds this file against it.

select cast($1 as text) as resource, id, columns
from
  (
    select
      t.id,
      array_remove(
        array[
          case when left(t.version, 27) > $2 then 'version' end,
          case when t.version = '' and t.order_number is not null then 'order_number' end,
          case when t.version = '' and t.customer_id is not null then 'customer_id' end,
          case when t.version = '' and t.status is not null then 'status' end,
          case when t.version = '' and t.subtotal is not null then 'subtotal' end,
          case when t.version = '' and t.discount_amount is not null then 'discount_amount' end,
          case when t.version = '' and t.total is not null then 'total' end,
          case when t.version = '' and t.currency is not null then 'currency' end,
          case when t.version = '' and t.description is not null then 'description' end,
          case when t.version = '' and t.failure_code is not null then 'failure_code' end,
          case when t.version = '' and t.failure_reason is not null then 'failure_reason' end,
          case when t.version = '' and t.subscription_id is not null then 'subscription_id' end,
          case when t.version = '' and t.subscription_cycle is not null then 'subscription_cycle' end,
          case when t.version = '' and t.payment_method_id is not null then 'payment_method_id' end,
          case when t.version = '' and t.card_brand is not null then 'card_brand' end,
          case when t.version = '' and t.card_last_four is not null then 'card_last_four' end,
          case when t.version = '' and t.coupon_code is not null then 'coupon_code' end,
          case when t.version = '' and t.created_at is not null then 'created_at' end,
          case when t.version = '' and t.updated_at is not null then 'updated_at' end,
          case when t.version = '' and t.data is not null then 'data' end,
          case when left(t.dunning_version, 27) > $3 then 'dunning_version' end,
          case when t.dunning_version = '' and t.attempt_count is not null then 'attempt_count' end,
          case when t.dunning_version = '' and t.next_retry_at is not null then 'next_retry_at' end,
          case when left(t.items_version, 27) > $4 then 'items_version' end,
          case when t.items_version = '' and t.items is not null then 'items' end,
          case when t.version <> '' and t.content_hash is distinct from right(t.version, 32) then 'content_hash' end,
          case when t.deleted_at is not null then 'deleted_at' end
        ]::text[],
        null
      ) as columns
    from mirror.orders t
    where cast($5 as text) is null or t.id > $6
  ) checked
where cardinality(columns) > 0
order by id
limit $7
