-- Holds states against the stored rows, where something may differ (compare/compare-states.ts).
-- Generated for mirror.transactions; test/mirror/generated-sql.test.ts holds this file against it.

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
      unnest($13::text[]) as inline_version,
      unnest($14::timestamptz[]) as inline_version_at,
      unnest($15::integer[]) as inline_version_position,
      unnest($16::integer[]) as inline_version_length,
      unnest($17::timestamptz[]) as inline_version_observed,
      unnest($18::text[]) as inline_version_cause,
      unnest($19::boolean[]) as inline_version_replaced,
      unnest($20::text[]) as inline_version_absent,
      unnest($21::integer[]) as attempt_count,
      unnest($22::text[]) as type,
      unnest($23::bigint[]) as amount,
      unnest($24::text[]) as currency,
      unnest($25::text[]) as customer_id,
      unnest($26::text[]) as failure_reason,
      unnest($27::text[]) as payment_method_id,
      unnest($28::text[]) as card_brand,
      unnest($29::text[]) as card_last_four,
      unnest($30::timestamptz[]) as created_at
  ),
  given as materialized (
    select
      g.id,
      g.last_cause,
      g.version_position,
      g.version_length,
      g.version_observed,
      g.version_absent,
      g.inline_version_position,
      g.inline_version_length,
      g.inline_version_observed,
      g.inline_version_absent,
      g.attempt_count,
      g.type,
      g.amount,
      g.currency,
      g.customer_id,
      g.failure_reason,
      g.payment_method_id,
      g.card_brand,
      g.card_last_four,
      g.created_at,
      coalesce(g.winner, true) as winner,
      coalesce(g.version, '') as version,
      convert_from(
        substr((select bytes from blob), g.version_position, g.version_length), 'UTF8'
      )::jsonb as version_content,
      coalesce(g.version_at, left(g.version, 27)::timestamptz) as version_at,
      right(g.version, 32) as version_hash,
      coalesce(g.version_cause, g.last_cause) as version_cause,
      coalesce(g.version_replaced, false) as version_replaced,
      coalesce(g.inline_version, '') as inline_version,
      convert_from(
        substr((select bytes from blob), g.inline_version_position, g.inline_version_length), 'UTF8'
      )::jsonb as inline_version_content,
      coalesce(g.inline_version_at, left(g.inline_version, 27)::timestamptz) as inline_version_at,
      right(g.inline_version, 32) as inline_version_hash,
      coalesce(g.inline_version_cause, g.last_cause) as inline_version_cause,
      coalesce(g.inline_version_replaced, false) as inline_version_replaced,
      coalesce(
        coalesce(g.version_at, left(g.version, 27)::timestamptz),
        coalesce(g.inline_version_at, left(g.inline_version, 27)::timestamptz)
      ) as updated_at
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
          case when (t.version <> '' and t.data is distinct from r.version_content) then '(content)' end,
          case
            when (t.version <> '' and t.source_updated_at is distinct from r.version_at)
              then 'source_updated_at'
          end,
          case when (t.version <> '' and left(t.version, 27) <> left(r.version, 27)) then 'version' end,
          case when ((t.version <> '' or t.type is not null) and t.type is distinct from r.type) then 'type' end,
          case
            when ((t.version <> '' or t.amount is not null) and t.amount is distinct from r.amount)
              then 'amount'
          end,
          case
            when ((t.version <> '' or t.currency is not null) and t.currency is distinct from r.currency)
              then 'currency'
          end,
          case
            when ((t.version <> '' or t.customer_id is not null) and t.customer_id is distinct from r.customer_id)
              then 'customer_id'
          end,
          case
            when (
              (t.version <> '' or t.failure_reason is not null) and t.failure_reason is distinct from r.failure_reason
            )
              then 'failure_reason'
          end,
          case
            when (
              (t.version <> '' or t.payment_method_id is not null)
              and t.payment_method_id is distinct from r.payment_method_id
            )
              then 'payment_method_id'
          end,
          case
            when ((t.version <> '' or t.card_brand is not null) and t.card_brand is distinct from r.card_brand)
              then 'card_brand'
          end,
          case
            when (
              (t.version <> '' or t.card_last_four is not null)
              and left(t.card_last_four, 500) is distinct from r.card_last_four
            )
              then 'card_last_four'
          end,
          case
            when ((t.version <> '' or t.created_at is not null) and t.created_at is distinct from r.created_at)
              then 'created_at'
          end,
          case
            when ((t.version <> '' or t.updated_at is not null) and t.updated_at is distinct from r.updated_at)
              then 'updated_at'
          end,
          case when t.status is distinct from left(r.version_content ->> 'status', 40) then 'status' end,
          case
            when t.status is distinct from (
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
              then 'status'
          end,
          case
            when t.order_id is distinct from (coalesce(t.data ->> 'order_id', t.inline ->> 'order_id'))
              then 'order_id'
          end,
          case
            when t.failure_code is distinct from (coalesce(t.data ->> 'failure_code', t.inline ->> 'failure_code'))
              then 'failure_code'
          end,
          case
            when t.processor_transaction_id is distinct from (
              coalesce(t.inline ->> 'processor_transaction_id', t.data -> 'processor_response' ->> 'transaction_id')
            )
              then 'processor_transaction_id'
          end
        ]::text[],
        null
      )
  end as version_differing,
  case
    when r.inline_version <> ''
    and t.id is not null
      then array_remove(
        array[
          case
            when (t.inline_version <> '' and t.attempt_count is distinct from r.attempt_count)
              then 'attempt_count'
          end,
          case
            when (t.inline_version <> '' and t.inline is distinct from r.inline_version_content)
              then '(content)'
          end,
          case when (r.version = '' and t.version = '' and t.type is distinct from r.type) then 'type' end,
          case when (r.version = '' and t.version = '' and t.amount is distinct from r.amount) then 'amount' end,
          case when (r.version = '' and t.version = '' and t.currency is distinct from r.currency) then 'currency' end,
          case
            when (r.version = '' and t.version = '' and t.customer_id is distinct from r.customer_id)
              then 'customer_id'
          end,
          case
            when (r.version = '' and t.version = '' and t.failure_reason is distinct from r.failure_reason)
              then 'failure_reason'
          end,
          case
            when (r.version = '' and t.version = '' and t.payment_method_id is distinct from r.payment_method_id)
              then 'payment_method_id'
          end,
          case
            when (r.version = '' and t.version = '' and t.card_brand is distinct from r.card_brand)
              then 'card_brand'
          end,
          case
            when (r.version = '' and t.version = '' and left(t.card_last_four, 500) is distinct from r.card_last_four)
              then 'card_last_four'
          end,
          case
            when (r.version = '' and t.version = '' and t.created_at is distinct from r.created_at)
              then 'created_at'
          end,
          case
            when (r.version = '' and t.version = '' and t.updated_at is distinct from r.updated_at)
              then 'updated_at'
          end,
          case
            when t.status is distinct from (
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
              then 'status'
          end,
          case
            when t.order_id is distinct from (coalesce(t.data ->> 'order_id', t.inline ->> 'order_id'))
              then 'order_id'
          end,
          case
            when t.failure_code is distinct from (coalesce(t.data ->> 'failure_code', t.inline ->> 'failure_code'))
              then 'failure_code'
          end,
          case
            when t.processor_transaction_id is distinct from (
              coalesce(t.inline ->> 'processor_transaction_id', t.data -> 'processor_response' ->> 'transaction_id')
            )
              then 'processor_transaction_id'
          end
        ]::text[],
        null
      )
  end as inline_version_differing,
  to_jsonb(t) as stored
from given r
left join mirror.transactions t on t.id = r.id
where r.winner
and (
  t.id is null
  or (
    r.version <> ''
    and (
      t.version = ''
      or (t.version <> '' and t.data is distinct from r.version_content)
      or (t.version <> '' and t.source_updated_at is distinct from r.version_at)
      or (t.version <> '' and left(t.version, 27) <> left(r.version, 27))
      or ((t.version <> '' or t.type is not null) and t.type is distinct from r.type)
      or ((t.version <> '' or t.amount is not null) and t.amount is distinct from r.amount)
      or ((t.version <> '' or t.currency is not null) and t.currency is distinct from r.currency)
      or ((t.version <> '' or t.customer_id is not null) and t.customer_id is distinct from r.customer_id)
      or ((t.version <> '' or t.failure_reason is not null) and t.failure_reason is distinct from r.failure_reason)
      or (
        (t.version <> '' or t.payment_method_id is not null)
        and t.payment_method_id is distinct from r.payment_method_id
      )
      or ((t.version <> '' or t.card_brand is not null) and t.card_brand is distinct from r.card_brand)
      or (
        (t.version <> '' or t.card_last_four is not null)
        and left(t.card_last_four, 500) is distinct from r.card_last_four
      )
      or ((t.version <> '' or t.created_at is not null) and t.created_at is distinct from r.created_at)
      or ((t.version <> '' or t.updated_at is not null) and t.updated_at is distinct from r.updated_at)
      or t.status is distinct from left(r.version_content ->> 'status', 40)
      or t.status is distinct from (
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
      or t.order_id is distinct from (coalesce(t.data ->> 'order_id', t.inline ->> 'order_id'))
      or t.failure_code is distinct from (coalesce(t.data ->> 'failure_code', t.inline ->> 'failure_code'))
      or t.processor_transaction_id is distinct from (
        coalesce(t.inline ->> 'processor_transaction_id', t.data -> 'processor_response' ->> 'transaction_id')
      )
    )
  )
  or (
    r.inline_version <> ''
    and (
      t.inline_version = ''
      or (t.inline_version <> '' and t.attempt_count is distinct from r.attempt_count)
      or (t.inline_version <> '' and t.inline is distinct from r.inline_version_content)
      or (r.version = '' and t.version = '' and t.type is distinct from r.type)
      or (r.version = '' and t.version = '' and t.amount is distinct from r.amount)
      or (r.version = '' and t.version = '' and t.currency is distinct from r.currency)
      or (r.version = '' and t.version = '' and t.customer_id is distinct from r.customer_id)
      or (r.version = '' and t.version = '' and t.failure_reason is distinct from r.failure_reason)
      or (r.version = '' and t.version = '' and t.payment_method_id is distinct from r.payment_method_id)
      or (r.version = '' and t.version = '' and t.card_brand is distinct from r.card_brand)
      or (r.version = '' and t.version = '' and left(t.card_last_four, 500) is distinct from r.card_last_four)
      or (r.version = '' and t.version = '' and t.created_at is distinct from r.created_at)
      or (r.version = '' and t.version = '' and t.updated_at is distinct from r.updated_at)
      or t.status is distinct from (
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
      or t.order_id is distinct from (coalesce(t.data ->> 'order_id', t.inline ->> 'order_id'))
      or t.failure_code is distinct from (coalesce(t.data ->> 'failure_code', t.inline ->> 'failure_code'))
      or t.processor_transaction_id is distinct from (
        coalesce(t.inline ->> 'processor_transaction_id', t.data -> 'processor_response' ->> 'transaction_id')
      )
    )
  )
)
