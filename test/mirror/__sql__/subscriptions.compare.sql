-- Holds states against the stored rows, where something may differ (compare/compare-states.ts).
-- Generated for mirror.subscriptions; test/mirror/generated-sql.test.ts holds this file against it.

with
  blob as materialized (select $1::bytea as bytes),
  given as materialized (
    select
      g.*,
      convert_from(
        substr((select bytes from blob), g.version_position, g.version_length), 'UTF8'
      )::jsonb as version_content,
      convert_from(
        substr((select bytes from blob), g.detail_version_position, g.detail_version_length), 'UTF8'
      )::jsonb as detail_version_content
    from
      unnest(
        $2::text[], $3::boolean[], $4::text[], $5::text[], $6::timestamptz[], $7::timestamptz[], $8::text[], $9::text[],
        $10::boolean[], $11::integer[], $12::integer[], $13::text[], $14::text[], $15::text[], $16::bigint[],
        $17::text[], $18::timestamptz[], $19::timestamptz[], $20::integer[], $21::integer[], $22::timestamptz[],
        $23::timestamptz[], $24::timestamptz[], $25::timestamptz[], $26::text[], $27::text[], $28::text[],
        $29::timestamptz[], $30::timestamptz[], $31::text[], $32::timestamptz[], $33::timestamptz[], $34::text[],
        $35::text[], $36::boolean[], $37::integer[], $38::integer[], $39::text[], $40::integer[], $41::timestamptz[]
      ) as g(
        id, winner, last_cause, version, version_at, version_observed, version_hash, version_cause, version_replaced,
        version_position, version_length, customer_id, plan_id, status, amount, currency, current_period_start,
        current_period_end, current_billing_cycle, total_billing_cycles, next_billing_date, start_date, end_date,
        canceled_at, payment_method_id, card_brand, card_last_four, created_at, updated_at, detail_version,
        detail_version_at, detail_version_observed, detail_version_hash, detail_version_cause, detail_version_replaced,
        detail_version_position, detail_version_length, failure_reason, attempt_count, next_retry_at
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
          case when (t.version <> '' and t.card_last_four is distinct from r.card_last_four) then 'card_last_four' end,
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
      or (t.version <> '' and t.card_last_four is distinct from r.card_last_four)
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
