-- Holds states against the stored rows, where something may differ (compare/compare-states.ts).
-- Generated for mirror.orders; test/mirror/generated-sql.test.ts holds this file against it.

with
  blob as materialized (select $1::bytea as bytes),
  arrays as (
    select
      unnest($2::text[]) as id,
      unnest($3::boolean[]) as winner,
      unnest($4::text[]) as last_cause,
      unnest($5::text[]) as version,
      unnest($6::timestamptz[]) as version_at,
      unnest($7::integer[]) as version_position,
      unnest($8::integer[]) as version_length,
      unnest($9::timestamptz[]) as version_observed,
      unnest($10::text[]) as version_cause,
      unnest($11::boolean[]) as version_replaced,
      unnest($12::text[]) as version_absent,
      unnest($13::text[]) as order_number,
      unnest($14::text[]) as customer_id,
      unnest($15::text[]) as status,
      unnest($16::bigint[]) as subtotal,
      unnest($17::bigint[]) as discount_amount,
      unnest($18::bigint[]) as total,
      unnest($19::text[]) as currency,
      unnest($20::text[]) as description,
      unnest($21::text[]) as failure_code,
      unnest($22::text[]) as failure_reason,
      unnest($23::text[]) as subscription_id,
      unnest($24::integer[]) as subscription_cycle,
      unnest($25::text[]) as payment_method_id,
      unnest($26::text[]) as card_brand,
      unnest($27::text[]) as card_last_four,
      unnest($28::text[]) as coupon_code,
      unnest($29::timestamptz[]) as created_at,
      unnest($30::text[]) as dunning_version,
      unnest($31::timestamptz[]) as dunning_version_at,
      unnest($32::integer[]) as dunning_version_position,
      unnest($33::integer[]) as dunning_version_length,
      unnest($34::timestamptz[]) as dunning_version_observed,
      unnest($35::text[]) as dunning_version_cause,
      unnest($36::boolean[]) as dunning_version_replaced,
      unnest($37::text[]) as dunning_version_absent,
      unnest($38::integer[]) as attempt_count,
      unnest($39::timestamptz[]) as next_retry_at,
      unnest($40::text[]) as items_version,
      unnest($41::timestamptz[]) as items_version_at,
      unnest($42::integer[]) as items_version_position,
      unnest($43::integer[]) as items_version_length
  ),
  given as materialized (
    select
      g.id,
      g.last_cause,
      g.version_position,
      g.version_length,
      g.version_observed,
      g.version_absent,
      g.order_number,
      g.customer_id,
      g.status,
      g.subtotal,
      g.discount_amount,
      g.total,
      g.currency,
      g.description,
      g.failure_code,
      g.failure_reason,
      g.subscription_id,
      g.subscription_cycle,
      g.payment_method_id,
      g.card_brand,
      g.card_last_four,
      g.coupon_code,
      g.created_at,
      g.dunning_version_position,
      g.dunning_version_length,
      g.dunning_version_observed,
      g.dunning_version_absent,
      g.attempt_count,
      g.next_retry_at,
      g.items_version_position,
      g.items_version_length,
      coalesce(g.winner, true) as winner,
      coalesce(g.version, '') as version,
      convert_from(
        substr((select bytes from blob), g.version_position, g.version_length), 'UTF8'
      )::jsonb as version_content,
      coalesce(g.version_at, left(g.version, 27)::timestamptz) as version_at,
      right(g.version, 32) as version_hash,
      coalesce(g.version_cause, g.last_cause) as version_cause,
      coalesce(g.version_replaced, false) as version_replaced,
      coalesce(g.version_at, left(g.version, 27)::timestamptz) as updated_at,
      coalesce(g.dunning_version, '') as dunning_version,
      convert_from(
        substr((select bytes from blob), g.dunning_version_position, g.dunning_version_length), 'UTF8'
      )::jsonb as dunning_version_content,
      coalesce(g.dunning_version_at, left(g.dunning_version, 27)::timestamptz) as dunning_version_at,
      right(g.dunning_version, 32) as dunning_version_hash,
      coalesce(g.dunning_version_cause, g.last_cause) as dunning_version_cause,
      coalesce(g.dunning_version_replaced, false) as dunning_version_replaced,
      coalesce(g.items_version, '') as items_version,
      convert_from(
        substr((select bytes from blob), g.items_version_position, g.items_version_length), 'UTF8'
      )::jsonb as items_version_content,
      coalesce(g.items_version_at, left(g.items_version, 27)::timestamptz) as items_version_at,
      right(g.items_version, 32) as items_version_hash
    from arrays g
  )
select
  r.id,
  t.id is not null as found,
  case
    when r.version <> ''
    and t.id is not null
      then array_remove(
        array[
          case
            when (t.version <> '' and left(t.order_number, 500) is distinct from r.order_number)
              then 'order_number'
          end,
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
          case
            when (t.version <> '' and left(t.card_last_four, 500) is distinct from r.card_last_four)
              then 'card_last_four'
          end,
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
      or (t.version <> '' and left(t.order_number, 500) is distinct from r.order_number)
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
      or (t.version <> '' and left(t.card_last_four, 500) is distinct from r.card_last_four)
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
