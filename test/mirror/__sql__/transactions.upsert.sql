-- Records states in the history and brings the rows up to the newest (write/upsert-statement.ts).
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
  ),
  recorded as (
    insert into mirror.versions (
      resource, id, source_updated_at, content_hash, observed_at, cause, replaced_text, absent_fields, data
    )
    select
      'transaction',
      id,
      version_at,
      version_hash,
      version_observed,
      version_cause,
      version_replaced,
      version_absent::text[],
      version_content
    from given
    where version <> ''
    union all
    select
      'transaction.inline',
      id,
      inline_version_at,
      inline_version_hash,
      inline_version_observed,
      inline_version_cause,
      inline_version_replaced,
      inline_version_absent::text[],
      inline_version_content
    from given
    where inline_version <> ''
    on conflict (resource, id, source_updated_at, content_hash, twin)
    do nothing
    returning resource, id, source_updated_at, content_hash
  ),
  before as materialized (
    select stored.*
    from
      given g cross join lateral (
        select t.id, t.content_hash::text, t.status::text, t.amount::text, t.version, t.inline_version
        from mirror.transactions t
        where t.id = g.id offset 0 for
        update
      ) stored
    -- Counting completes the history before the first row is locked: one order of locks for all. Each row is looked
    -- up by itself (offset 0): a plan made while the table was small would read all of it.
    where g.winner and (select count(*) from recorded) >= 0
  ),
  made as (
    insert into mirror.transactions as t (
      id, last_cause, version, data, source_updated_at, content_hash, inline_version, attempt_count, inline, type,
      amount, currency, customer_id, failure_reason, payment_method_id, card_brand, card_last_four, created_at,
      updated_at, status, order_id, failure_code, processor_transaction_id
    )
    select
      r.id,
      r.last_cause,
      r.version,
      r.version_content,
      r.version_at,
      r.version_hash,
      r.inline_version,
      r.attempt_count,
      r.inline_version_content,
      r.type,
      r.amount,
      r.currency,
      r.customer_id,
      r.failure_reason,
      r.payment_method_id,
      r.card_brand,
      r.card_last_four,
      r.created_at,
      r.updated_at,
      case
        when greatest(
          left(r.inline_version, 27) collate "C", substr(r.inline_version, 57, 27)
        ) || substr(r.inline_version, 29, 27) > greatest(
          left(r.version, 27) collate "C", substr(r.version, 29, 27)
        ) || left(r.version, 27)
          then left(r.inline_version_content ->> 'status', 40)
        else left(r.version_content ->> 'status', 40)
      end,
      coalesce(r.version_content ->> 'order_id', r.inline_version_content ->> 'order_id'),
      coalesce(r.version_content ->> 'failure_code', r.inline_version_content ->> 'failure_code'),
      coalesce(
        r.inline_version_content ->> 'processor_transaction_id',
        r.version_content -> 'processor_response' ->> 'transaction_id'
      )
    from given r
    -- Not in: a filter, which keeps the order of the given rows, as a join need not.
    where r.winner and r.id not in (select id from before)
    -- Never waits for the lock of a row: one that came to be since the statement began is missed, and tried again.
    on conflict (id)
    do nothing
    returning
      t.id,
      t.xmax = 0 as fresh,
      t.version,
      t.inline_version,
      t.content_hash::text as after_content_hash,
      t.status::text as after_status,
      t.amount::text as after_amount
  ),
  written as (
    insert into mirror.transactions as t (
      id, last_cause, version, data, source_updated_at, content_hash, inline_version, attempt_count, inline, type,
      amount, currency, customer_id, failure_reason, payment_method_id, card_brand, card_last_four, created_at,
      updated_at, status, order_id, failure_code, processor_transaction_id
    )
    select
      r.id,
      r.last_cause,
      r.version,
      r.version_content,
      r.version_at,
      r.version_hash,
      r.inline_version,
      r.attempt_count,
      r.inline_version_content,
      r.type,
      r.amount,
      r.currency,
      r.customer_id,
      r.failure_reason,
      r.payment_method_id,
      r.card_brand,
      r.card_last_four,
      r.created_at,
      r.updated_at,
      case
        when greatest(
          left(r.inline_version, 27) collate "C", substr(r.inline_version, 57, 27)
        ) || substr(r.inline_version, 29, 27) > greatest(
          left(r.version, 27) collate "C", substr(r.version, 29, 27)
        ) || left(r.version, 27)
          then left(r.inline_version_content ->> 'status', 40)
        else left(r.version_content ->> 'status', 40)
      end,
      coalesce(r.version_content ->> 'order_id', r.inline_version_content ->> 'order_id'),
      coalesce(r.version_content ->> 'failure_code', r.inline_version_content ->> 'failure_code'),
      coalesce(
        r.inline_version_content ->> 'processor_transaction_id',
        r.version_content -> 'processor_response' ->> 'transaction_id'
      )
    from given r
    where r.winner and r.id in (select id from before)
    on conflict (id)
    do update set
      last_cause = excluded.last_cause,
      version = (case when excluded.version > t.version then excluded.version else t.version end),
      data = (case when excluded.version > t.version then excluded.data else t.data end),
      source_updated_at = (
        case when excluded.version > t.version then excluded.source_updated_at else t.source_updated_at end
      ),
      content_hash = (case when excluded.version > t.version then excluded.content_hash else t.content_hash end),
      inline_version = (
        case when excluded.inline_version > t.inline_version then excluded.inline_version else t.inline_version end
      ),
      attempt_count = (
        case when excluded.inline_version > t.inline_version then excluded.attempt_count else t.attempt_count end
      ),
      inline = (case when excluded.inline_version > t.inline_version then excluded.inline else t.inline end),
      type = (
        case
          when excluded.version > t.version then excluded.type when t.version = ''
          and excluded.version = ''
          and excluded.inline_version > t.inline_version then excluded.type else t.type
        end
      ),
      amount = (
        case
          when excluded.version > t.version then excluded.amount when t.version = ''
          and excluded.version = ''
          and excluded.inline_version > t.inline_version then excluded.amount else t.amount
        end
      ),
      currency = (
        case
          when excluded.version > t.version then excluded.currency when t.version = ''
          and excluded.version = ''
          and excluded.inline_version > t.inline_version then excluded.currency else t.currency
        end
      ),
      customer_id = (
        case
          when excluded.version > t.version then excluded.customer_id when t.version = ''
          and excluded.version = ''
          and excluded.inline_version > t.inline_version then excluded.customer_id else t.customer_id
        end
      ),
      failure_reason = (
        case
          when excluded.version > t.version then excluded.failure_reason when t.version = ''
          and excluded.version = ''
          and excluded.inline_version > t.inline_version then excluded.failure_reason else t.failure_reason
        end
      ),
      payment_method_id = (
        case
          when excluded.version > t.version then excluded.payment_method_id when t.version = ''
          and excluded.version = ''
          and excluded.inline_version > t.inline_version then excluded.payment_method_id else t.payment_method_id
        end
      ),
      card_brand = (
        case
          when excluded.version > t.version then excluded.card_brand when t.version = ''
          and excluded.version = ''
          and excluded.inline_version > t.inline_version then excluded.card_brand else t.card_brand
        end
      ),
      card_last_four = (
        case
          when excluded.version > t.version then excluded.card_last_four when t.version = ''
          and excluded.version = ''
          and excluded.inline_version > t.inline_version then excluded.card_last_four else t.card_last_four
        end
      ),
      created_at = (
        case
          when excluded.version > t.version then excluded.created_at when t.version = ''
          and excluded.version = ''
          and excluded.inline_version > t.inline_version then excluded.created_at else t.created_at
        end
      ),
      updated_at = (
        case
          when excluded.version > t.version then excluded.updated_at when t.version = ''
          and excluded.version = ''
          and excluded.inline_version > t.inline_version then excluded.updated_at else t.updated_at
        end
      ),
      status = case
        when greatest(
          left(
            (
              case
                when excluded.inline_version > t.inline_version then excluded.inline_version
                else t.inline_version
              end
            ),
            27
          ) collate "C",
          substr(
            (
              case
                when excluded.inline_version > t.inline_version then excluded.inline_version
                else t.inline_version
              end
            ),
            57, 27
          )
        ) || substr(
          (case when excluded.inline_version > t.inline_version then excluded.inline_version else t.inline_version end),
          29, 27
        ) > greatest(
          left((case when excluded.version > t.version then excluded.version else t.version end), 27) collate "C",
          substr((case when excluded.version > t.version then excluded.version else t.version end), 29, 27)
        ) || left((case when excluded.version > t.version then excluded.version else t.version end), 27)
          then left(
            (case when excluded.inline_version > t.inline_version then excluded.inline else t.inline end) ->> 'status',
            40
          )
        else left((case when excluded.version > t.version then excluded.data else t.data end) ->> 'status', 40)
      end,
      order_id = coalesce(
        (case when excluded.version > t.version then excluded.data else t.data end) ->> 'order_id',
        (case when excluded.inline_version > t.inline_version then excluded.inline else t.inline end) ->> 'order_id'
      ),
      failure_code = coalesce(
        (case when excluded.version > t.version then excluded.data else t.data end) ->> 'failure_code',
        (case when excluded.inline_version > t.inline_version then excluded.inline else t.inline end) ->> 'failure_code'
      ),
      processor_transaction_id = coalesce(
        (
          case when excluded.inline_version > t.inline_version then excluded.inline else t.inline end
        ) ->> 'processor_transaction_id',
        (
          case when excluded.version > t.version then excluded.data else t.data end
        ) -> 'processor_response' ->> 'transaction_id'
      )
    where excluded.version > t.version or excluded.inline_version > t.inline_version
    returning
      t.id,
      t.xmax = 0 as fresh,
      t.version,
      t.inline_version,
      t.content_hash::text as after_content_hash,
      t.status::text as after_status,
      t.amount::text as after_amount
  )
select
  'row' as what,
  w.*,
  b.content_hash as before_content_hash,
  b.status as before_status,
  b.amount as before_amount,
  left(b.version, 27) as former_version,
  left(b.inline_version, 27) as former_inline_version
from (select * from made union all select * from written) w
left join before b using (id)
union all
select 'missed', r.id, null, null, null, null, null, null, null, null, null, null, null
from given r
where r.winner and r.id not in (select id from before) and r.id not in (select id from made)
union all
select 'count', count(*)::text, null, null, null, null, null, null, null, null, null, null, null
from recorded
union all
select
  'state',
  resource || '|' || id || '|' || to_char(
    source_updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'
  ) || '|' || content_hash,
  null,
  null,
  null,
  null,
  null,
  null,
  null,
  null,
  null,
  null,
  null
from recorded
where
  (select count(*) from recorded) < (
    select count(*) filter (where version <> '') + count(*) filter (where inline_version <> '')
    from given
  )
