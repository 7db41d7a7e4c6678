-- Records states in the history and brings the rows up to the newest (write/upsert-statement.ts).
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
  ),
  recorded as (
    insert into mirror.versions (
      resource, id, source_updated_at, content_hash, observed_at, cause, replaced_text, absent_fields, data
    )
    select
      'subscription',
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
      'subscription.detail',
      id,
      detail_version_at,
      detail_version_hash,
      detail_version_observed,
      detail_version_cause,
      detail_version_replaced,
      detail_version_absent::text[],
      detail_version_content
    from given
    where detail_version <> ''
    on conflict (resource, id, source_updated_at, content_hash, twin)
    do nothing
    returning resource, id, source_updated_at, content_hash
  ),
  before as materialized (
    select stored.*
    from
      given g cross join lateral (
        select
          t.id,
          t.content_hash::text,
          t.status::text,
          t.plan_id::text,
          t.current_billing_cycle::text,
          t.version,
          t.detail_version
        from mirror.subscriptions t
        where t.id = g.id offset 0 for
        update
      ) stored
    -- Counting completes the history before the first row is locked: one order of locks for all. Each row is looked
    -- up by itself (offset 0): a plan made while the table was small would read all of it.
    where g.winner and (select count(*) from recorded) >= 0
  ),
  made as (
    insert into mirror.subscriptions as t (
      id, last_cause, version, customer_id, plan_id, status, amount, currency, current_period_start, current_period_end,
      current_billing_cycle, total_billing_cycles, next_billing_date, start_date, end_date, canceled_at,
      payment_method_id, card_brand, card_last_four, created_at, updated_at, data, source_updated_at, content_hash,
      detail_version, failure_reason, attempt_count, next_retry_at
    )
    select
      r.id,
      r.last_cause,
      r.version,
      r.customer_id,
      r.plan_id,
      r.status,
      r.amount,
      r.currency,
      r.current_period_start,
      r.current_period_end,
      r.current_billing_cycle,
      r.total_billing_cycles,
      r.next_billing_date,
      r.start_date,
      r.end_date,
      r.canceled_at,
      r.payment_method_id,
      r.card_brand,
      r.card_last_four,
      r.created_at,
      r.updated_at,
      r.version_content,
      r.version_at,
      r.version_hash,
      r.detail_version,
      r.failure_reason,
      r.attempt_count,
      r.next_retry_at
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
      t.detail_version,
      t.content_hash::text as after_content_hash,
      t.status::text as after_status,
      t.plan_id::text as after_plan_id,
      t.current_billing_cycle::text as after_current_billing_cycle
  ),
  written as (
    insert into mirror.subscriptions as t (
      id, last_cause, version, customer_id, plan_id, status, amount, currency, current_period_start, current_period_end,
      current_billing_cycle, total_billing_cycles, next_billing_date, start_date, end_date, canceled_at,
      payment_method_id, card_brand, card_last_four, created_at, updated_at, data, source_updated_at, content_hash,
      detail_version, failure_reason, attempt_count, next_retry_at
    )
    select
      r.id,
      r.last_cause,
      r.version,
      r.customer_id,
      r.plan_id,
      r.status,
      r.amount,
      r.currency,
      r.current_period_start,
      r.current_period_end,
      r.current_billing_cycle,
      r.total_billing_cycles,
      r.next_billing_date,
      r.start_date,
      r.end_date,
      r.canceled_at,
      r.payment_method_id,
      r.card_brand,
      r.card_last_four,
      r.created_at,
      r.updated_at,
      r.version_content,
      r.version_at,
      r.version_hash,
      r.detail_version,
      r.failure_reason,
      r.attempt_count,
      r.next_retry_at
    from given r
    where r.winner and r.id in (select id from before)
    on conflict (id)
    do update set
      last_cause = excluded.last_cause,
      version = (case when excluded.version > t.version then excluded.version else t.version end),
      customer_id = (case when excluded.version > t.version then excluded.customer_id else t.customer_id end),
      plan_id = (case when excluded.version > t.version then excluded.plan_id else t.plan_id end),
      status = (case when excluded.version > t.version then excluded.status else t.status end),
      amount = (case when excluded.version > t.version then excluded.amount else t.amount end),
      currency = (case when excluded.version > t.version then excluded.currency else t.currency end),
      current_period_start = (
        case when excluded.version > t.version then excluded.current_period_start else t.current_period_start end
      ),
      current_period_end = (
        case when excluded.version > t.version then excluded.current_period_end else t.current_period_end end
      ),
      current_billing_cycle = (
        case when excluded.version > t.version then excluded.current_billing_cycle else t.current_billing_cycle end
      ),
      total_billing_cycles = (
        case when excluded.version > t.version then excluded.total_billing_cycles else t.total_billing_cycles end
      ),
      next_billing_date = (
        case when excluded.version > t.version then excluded.next_billing_date else t.next_billing_date end
      ),
      start_date = (case when excluded.version > t.version then excluded.start_date else t.start_date end),
      end_date = (case when excluded.version > t.version then excluded.end_date else t.end_date end),
      canceled_at = (case when excluded.version > t.version then excluded.canceled_at else t.canceled_at end),
      payment_method_id = (
        case when excluded.version > t.version then excluded.payment_method_id else t.payment_method_id end
      ),
      card_brand = (case when excluded.version > t.version then excluded.card_brand else t.card_brand end),
      card_last_four = (case when excluded.version > t.version then excluded.card_last_four else t.card_last_four end),
      created_at = (case when excluded.version > t.version then excluded.created_at else t.created_at end),
      updated_at = (case when excluded.version > t.version then excluded.updated_at else t.updated_at end),
      data = (case when excluded.version > t.version then excluded.data else t.data end),
      source_updated_at = (
        case when excluded.version > t.version then excluded.source_updated_at else t.source_updated_at end
      ),
      content_hash = (case when excluded.version > t.version then excluded.content_hash else t.content_hash end),
      detail_version = (
        case when excluded.detail_version > t.detail_version then excluded.detail_version else t.detail_version end
      ),
      failure_reason = (
        case when excluded.detail_version > t.detail_version then excluded.failure_reason else t.failure_reason end
      ),
      attempt_count = (
        case when excluded.detail_version > t.detail_version then excluded.attempt_count else t.attempt_count end
      ),
      next_retry_at = (
        case when excluded.detail_version > t.detail_version then excluded.next_retry_at else t.next_retry_at end
      )
    where excluded.version > t.version or excluded.detail_version > t.detail_version
    returning
      t.id,
      t.xmax = 0 as fresh,
      t.version,
      t.detail_version,
      t.content_hash::text as after_content_hash,
      t.status::text as after_status,
      t.plan_id::text as after_plan_id,
      t.current_billing_cycle::text as after_current_billing_cycle
  )
select
  'row' as what,
  w.*,
  b.content_hash as before_content_hash,
  b.status as before_status,
  b.plan_id as before_plan_id,
  b.current_billing_cycle as before_current_billing_cycle,
  left(b.version, 27) as former_version,
  left(b.detail_version, 27) as former_detail_version
from (select * from made union all select * from written) w
left join before b using (id)
union all
select 'missed', r.id, null, null, null, null, null, null, null, null, null, null, null, null, null
from given r
where r.winner and r.id not in (select id from before) and r.id not in (select id from made)
union all
select 'count', count(*)::text, null, null, null, null, null, null, null, null, null, null, null, null, null
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
  null,
  null,
  null
from recorded
where
  (select count(*) from recorded) < (
    select count(*) filter (where version <> '') + count(*) filter (where detail_version <> '')
    from given
  )
