-- Holds states against the stored rows, where something may differ (compare/compare-states.ts).
-- Generated for mirror.orders; test/mirror/generated-sql.test.ts holds this file against it.

with
  blob as materialized (select $1::bytea as bytes),
  given as materialized (
    select
      g.*,
      convert_from(
        substr((select bytes from blob), g.version_position, g.version_length), 'UTF8'
      )::jsonb as version_content,
      convert_from(
        substr((select bytes from blob), g.dunning_version_position, g.dunning_version_length), 'UTF8'
      )::jsonb as dunning_version_content,
      convert_from(
        substr((select bytes from blob), g.items_version_position, g.items_version_length), 'UTF8'
      )::jsonb as items_version_content
    from
      unnest(
        $2::text[], $3::boolean[], $4::text[], $5::text[], $6::timestamptz[], $7::timestamptz[], $8::text[], $9::text[],
        $10::boolean[], $11::integer[], $12::integer[], $13::text[], $14::text[], $15::text[], $16::bigint[],
        $17::bigint[], $18::bigint[], $19::text[], $20::text[], $21::text[], $22::text[], $23::text[], $24::integer[],
        $25::text[], $26::text[], $27::text[], $28::text[], $29::timestamptz[], $30::timestamptz[], $31::text[],
        $32::timestamptz[], $33::timestamptz[], $34::text[], $35::text[], $36::boolean[], $37::integer[],
        $38::integer[], $39::integer[], $40::timestamptz[], $41::text[], $42::timestamptz[], $43::timestamptz[],
        $44::text[], $45::text[], $46::boolean[], $47::integer[], $48::integer[]
      ) as g(
        id, winner, last_cause, version, version_at, version_observed, version_hash, version_cause, version_replaced,
        version_position, version_length, order_number, customer_id, status, subtotal, discount_amount, total, currency,
        description, failure_code, failure_reason, subscription_id, subscription_cycle, payment_method_id, card_brand,
        card_last_four, coupon_code, created_at, updated_at, dunning_version, dunning_version_at,
        dunning_version_observed, dunning_version_hash, dunning_version_cause, dunning_version_replaced,
        dunning_version_position, dunning_version_length, attempt_count, next_retry_at, items_version, items_version_at,
        items_version_observed, items_version_hash, items_version_cause, items_version_replaced, items_version_position,
        items_version_length
      )
  )
select
  r.id,
  t.id is not null as found,
  case
    when r.version <> ''
    and t.id is not null
      then array_remove(
        array[
          case when (t.version <> '' and t.order_number is distinct from r.order_number) then 'order_number' end,
          case when (t.version <> '' and t.customer_id is distinct from r.customer_id) then 'customer_id' end,
          case when (t.version <> '' and t.status is distinct from r.status) then 'status' end,
          case when (t.version <> '' and t.subtotal is distinct from r.subtotal) then 'subtotal' end,
          case
            when (t.version <> '' and t.discount_amount is distinct from r.discount_amount)
              then 'discount_amount'
          end,
          case when (t.version <> '' and t.total is distinct from r.total) then 'total' end,
          case when (t.version <> '' and t.currency is distinct from r.currency) then 'currency' end,
          case when (t.version <> '' and t.description is distinct from r.description) then 'description' end,
          case when (t.version <> '' and t.failure_code is distinct from r.failure_code) then 'failure_code' end,
          case when (t.version <> '' and t.failure_reason is distinct from r.failure_reason) then 'failure_reason' end,
          case
            when (t.version <> '' and t.subscription_id is distinct from r.subscription_id)
              then 'subscription_id'
          end,
          case
            when (t.version <> '' and t.subscription_cycle is distinct from r.subscription_cycle)
              then 'subscription_cycle'
          end,
          case
            when (t.version <> '' and t.payment_method_id is distinct from r.payment_method_id)
              then 'payment_method_id'
          end,
          case when (t.version <> '' and t.card_brand is distinct from r.card_brand) then 'card_brand' end,
          case when (t.version <> '' and t.card_last_four is distinct from r.card_last_four) then 'card_last_four' end,
          case when (t.version <> '' and t.coupon_code is distinct from r.coupon_code) then 'coupon_code' end,
          case when (t.version <> '' and t.created_at is distinct from r.created_at) then 'created_at' end,
          case when (t.version <> '' and t.updated_at is distinct from r.updated_at) then 'updated_at' end,
          case when (t.version <> '' and t.data is distinct from r.version_content) then '(content)' end,
          case
            when (t.version <> '' and t.source_updated_at is distinct from r.version_at)
              then 'source_updated_at'
          end,
          case when (t.version <> '' and left(t.version, 27) <> left(r.version, 27)) then 'version' end
        ]::text[],
        null
      )
  end as version_differing,
  case
    when r.dunning_version <> ''
    and t.id is not null
      then array_remove(
        array[
          case
            when (t.dunning_version <> '' and t.attempt_count is distinct from r.attempt_count)
              then 'attempt_count'
          end,
          case
            when (t.dunning_version <> '' and t.next_retry_at is distinct from r.next_retry_at)
              then 'next_retry_at'
          end
        ]::text[],
        null
      )
  end as dunning_version_differing,
  case
    when r.items_version <> ''
    and t.id is not null
      then array_remove(
        array[
          case when (t.items_version <> '' and t.items is distinct from r.items_version_content) then '(content)' end
        ]::text[],
        null
      )
  end as items_version_differing,
  to_jsonb(t) as stored
from given r
left join mirror.orders t on t.id = r.id
where r.winner
and (
  t.id is null
  or (
    r.version <> ''
    and (
      t.version = ''
      or (t.version <> '' and t.order_number is distinct from r.order_number)
      or (t.version <> '' and t.customer_id is distinct from r.customer_id)
      or (t.version <> '' and t.status is distinct from r.status)
      or (t.version <> '' and t.subtotal is distinct from r.subtotal)
      or (t.version <> '' and t.discount_amount is distinct from r.discount_amount)
      or (t.version <> '' and t.total is distinct from r.total)
      or (t.version <> '' and t.currency is distinct from r.currency)
      or (t.version <> '' and t.description is distinct from r.description)
      or (t.version <> '' and t.failure_code is distinct from r.failure_code)
      or (t.version <> '' and t.failure_reason is distinct from r.failure_reason)
      or (t.version <> '' and t.subscription_id is distinct from r.subscription_id)
      or (t.version <> '' and t.subscription_cycle is distinct from r.subscription_cycle)
      or (t.version <> '' and t.payment_method_id is distinct from r.payment_method_id)
      or (t.version <> '' and t.card_brand is distinct from r.card_brand)
      or (t.version <> '' and t.card_last_four is distinct from r.card_last_four)
      or (t.version <> '' and t.coupon_code is distinct from r.coupon_code)
      or (t.version <> '' and t.created_at is distinct from r.created_at)
      or (t.version <> '' and t.updated_at is distinct from r.updated_at)
      or (t.version <> '' and t.data is distinct from r.version_content)
      or (t.version <> '' and t.source_updated_at is distinct from r.version_at)
      or (t.version <> '' and left(t.version, 27) <> left(r.version, 27))
    )
  )
  or (
    r.dunning_version <> ''
    and (
      t.dunning_version = ''
      or (t.dunning_version <> '' and t.attempt_count is distinct from r.attempt_count)
      or (t.dunning_version <> '' and t.next_retry_at is distinct from r.next_retry_at)
    )
  )
  or (
    r.items_version <> ''
    and (t.items_version = '' or (t.items_version <> '' and t.items is distinct from r.items_version_content))
  )
)
