-- Holds states against the stored rows, where something may differ (compare/compare-states.ts).
-- Generated for mirror.subscriptions; test/mirror/generated-sql.test.ts holds this file against it.

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
      unnest($13::text[]) as customer_id,
      unnest($14::text[]) as plan_id,
      unnest($15::text[]) as status,
      unnest($16::bigint[]) as amount,
      unnest($17::text[]) as currency,
      unnest($18::timestamptz[]) as current_period_start,
      unnest($19::timestamptz[]) as current_period_end,
      unnest($20::integer[]) as current_billing_cycle,
      unnest($21::integer[]) as total_billing_cycles,
      unnest($22::timestamptz[]) as next_billing_date,
      unnest($23::timestamptz[]) as start_date,
      unnest($24::timestamptz[]) as end_date,
      unnest($25::timestamptz[]) as canceled_at,
      unnest($26::text[]) as payment_method_id,
      unnest($27::text[]) as card_brand,
      unnest($28::text[]) as card_last_four,
      unnest($29::timestamptz[]) as created_at,
      unnest($30::text[]) as detail_version,
      unnest($31::timestamptz[]) as detail_version_at,
      unnest($32::integer[]) as detail_version_position,
      unnest($33::integer[]) as detail_version_length,
      unnest($34::timestamptz[]) as detail_version_observed,
      unnest($35::text[]) as detail_version_cause,
      unnest($36::boolean[]) as detail_version_replaced,
      unnest($37::text[]) as detail_version_absent,
      unnest($38::text[]) as failure_reason,
      unnest($39::integer[]) as attempt_count,
      unnest($40::timestamptz[]) as next_retry_at
  ),
  given as materialized (
    select
      g.id,
      g.last_cause,
      g.version_position,
      g.version_length,
      g.version_observed,
      g.version_absent,
      g.customer_id,
      g.plan_id,
      g.status,
      g.amount,
      g.currency,
      g.current_period_start,
      g.current_period_end,
      g.current_billing_cycle,
      g.total_billing_cycles,
      g.next_billing_date,
      g.start_date,
      g.end_date,
      g.canceled_at,
      g.payment_method_id,
      g.card_brand,
      g.card_last_four,
      g.created_at,
      g.detail_version_position,
      g.detail_version_length,
      g.detail_version_observed,
      g.detail_version_absent,
      g.failure_reason,
      g.attempt_count,
      g.next_retry_at,
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
      coalesce(g.detail_version, '') as detail_version,
      convert_from(
        substr((select bytes from blob), g.detail_version_position, g.detail_version_length), 'UTF8'
      )::jsonb as detail_version_content,
      coalesce(g.detail_version_at, left(g.detail_version, 27)::timestamptz) as detail_version_at,
      right(g.detail_version, 32) as detail_version_hash,
      coalesce(g.detail_version_cause, g.last_cause) as detail_version_cause,
      coalesce(g.detail_version_replaced, false) as detail_version_replaced
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
          case when (t.version <> '' and t.customer_id is distinct from r.customer_id) then 'customer_id' end,
          case when (t.version <> '' and t.plan_id is distinct from r.plan_id) then 'plan_id' end,
          case when (t.version <> '' and t.status is distinct from r.status) then 'status' end,
          case when (t.version <> '' and t.amount is distinct from r.amount) then 'amount' end,
          case when (t.version <> '' and t.currency is distinct from r.currency) then 'currency' end,
          case
            when (t.version <> '' and t.current_period_start is distinct from r.current_period_start)
              then 'current_period_start'
          end,
          case
            when (t.version <> '' and t.current_period_end is distinct from r.current_period_end)
              then 'current_period_end'
          end,
          case
            when (t.version <> '' and t.current_billing_cycle is distinct from r.current_billing_cycle)
              then 'current_billing_cycle'
          end,
          case
            when (t.version <> '' and t.total_billing_cycles is distinct from r.total_billing_cycles)
              then 'total_billing_cycles'
          end,
          case
            when (t.version <> '' and t.next_billing_date is distinct from r.next_billing_date)
              then 'next_billing_date'
          end,
          case when (t.version <> '' and t.start_date is distinct from r.start_date) then 'start_date' end,
          case when (t.version <> '' and t.end_date is distinct from r.end_date) then 'end_date' end,
          case when (t.version <> '' and t.canceled_at is distinct from r.canceled_at) then 'canceled_at' end,
          case
            when (t.version <> '' and t.payment_method_id is distinct from r.payment_method_id)
              then 'payment_method_id'
          end,
          case when (t.version <> '' and t.card_brand is distinct from r.card_brand) then 'card_brand' end,
          case
            when (t.version <> '' and left(t.card_last_four, 500) is distinct from r.card_last_four)
              then 'card_last_four'
          end,
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
    when r.detail_version <> ''
    and t.id is not null
      then array_remove(
        array[
          case
            when (t.detail_version <> '' and t.failure_reason is distinct from r.failure_reason)
              then 'failure_reason'
          end,
          case
            when (t.detail_version <> '' and t.attempt_count is distinct from r.attempt_count)
              then 'attempt_count'
          end,
          case
            when (t.detail_version <> '' and t.next_retry_at is distinct from r.next_retry_at)
              then 'next_retry_at'
          end
        ]::text[],
        null
      )
  end as detail_version_differing,
  to_jsonb(t) as stored
from given r
left join mirror.subscriptions t on t.id = r.id
where r.winner
and (
  t.id is null
  or (
    r.version <> ''
    and (
      t.version = ''
      or (t.version <> '' and t.customer_id is distinct from r.customer_id)
      or (t.version <> '' and t.plan_id is distinct from r.plan_id)
      or (t.version <> '' and t.status is distinct from r.status)
      or (t.version <> '' and t.amount is distinct from r.amount)
      or (t.version <> '' and t.currency is distinct from r.currency)
      or (t.version <> '' and t.current_period_start is distinct from r.current_period_start)
      or (t.version <> '' and t.current_period_end is distinct from r.current_period_end)
      or (t.version <> '' and t.current_billing_cycle is distinct from r.current_billing_cycle)
      or (t.version <> '' and t.total_billing_cycles is distinct from r.total_billing_cycles)
      or (t.version <> '' and t.next_billing_date is distinct from r.next_billing_date)
      or (t.version <> '' and t.start_date is distinct from r.start_date)
      or (t.version <> '' and t.end_date is distinct from r.end_date)
      or (t.version <> '' and t.canceled_at is distinct from r.canceled_at)
      or (t.version <> '' and t.payment_method_id is distinct from r.payment_method_id)
      or (t.version <> '' and t.card_brand is distinct from r.card_brand)
      or (t.version <> '' and left(t.card_last_four, 500) is distinct from r.card_last_four)
      or (t.version <> '' and t.created_at is distinct from r.created_at)
      or (t.version <> '' and t.updated_at is distinct from r.updated_at)
      or (t.version <> '' and t.data is distinct from r.version_content)
      or (t.version <> '' and t.source_updated_at is distinct from r.version_at)
      or (t.version <> '' and left(t.version, 27) <> left(r.version, 27))
    )
  )
  or (
    r.detail_version <> ''
    and (
      t.detail_version = ''
      or (t.detail_version <> '' and t.failure_reason is distinct from r.failure_reason)
      or (t.detail_version <> '' and t.attempt_count is distinct from r.attempt_count)
      or (t.detail_version <> '' and t.next_retry_at is distinct from r.next_retry_at)
    )
  )
)
