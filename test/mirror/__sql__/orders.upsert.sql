-- Records states in the history and brings the rows up to the newest (write/upsert-statement.ts).
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
  ),
  recorded as (
    insert into mirror.versions (
      resource, id, source_updated_at, content_hash, observed_at, cause, replaced_text, absent_fields, data
    )
    select
      'order',
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
      'order.dunning',
      id,
      dunning_version_at,
      dunning_version_hash,
      dunning_version_observed,
      dunning_version_cause,
      dunning_version_replaced,
      dunning_version_absent::text[],
      dunning_version_content
    from given
    where dunning_version <> ''
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
          t.attempt_count::text,
          t.version,
          t.dunning_version,
          t.items_version
        from mirror.orders t
        where t.id = g.id offset 0 for
        update
      ) stored
    -- Counting completes the history before the first row is locked: one order of locks for all. Each row is looked
    -- up by itself (offset 0): a plan made while the table was small would read all of it.
    where g.winner and (select count(*) from recorded) >= 0
  ),
  made as (
    insert into mirror.orders as t (
      id, last_cause, version, order_number, customer_id, status, subtotal, discount_amount, total, currency,
      description, failure_code, failure_reason, subscription_id, subscription_cycle, payment_method_id, card_brand,
      card_last_four, coupon_code, created_at, updated_at, data, source_updated_at, content_hash, dunning_version,
      attempt_count, next_retry_at, items_version, items
    )
    select
      r.id,
      r.last_cause,
      r.version,
      r.order_number,
      r.customer_id,
      r.status,
      r.subtotal,
      r.discount_amount,
      r.total,
      r.currency,
      r.description,
      r.failure_code,
      r.failure_reason,
      r.subscription_id,
      r.subscription_cycle,
      r.payment_method_id,
      r.card_brand,
      r.card_last_four,
      r.coupon_code,
      r.created_at,
      r.updated_at,
      r.version_content,
      r.version_at,
      r.version_hash,
      r.dunning_version,
      r.attempt_count,
      r.next_retry_at,
      r.items_version,
      r.items_version_content
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
      t.dunning_version,
      t.items_version,
      t.content_hash::text as after_content_hash,
      t.status::text as after_status,
      t.attempt_count::text as after_attempt_count
  ),
  written as (
    insert into mirror.orders as t (
      id, last_cause, version, order_number, customer_id, status, subtotal, discount_amount, total, currency,
      description, failure_code, failure_reason, subscription_id, subscription_cycle, payment_method_id, card_brand,
      card_last_four, coupon_code, created_at, updated_at, data, source_updated_at, content_hash, dunning_version,
      attempt_count, next_retry_at, items_version, items
    )
    select
      r.id,
      r.last_cause,
      r.version,
      r.order_number,
      r.customer_id,
      r.status,
      r.subtotal,
      r.discount_amount,
      r.total,
      r.currency,
      r.description,
      r.failure_code,
      r.failure_reason,
      r.subscription_id,
      r.subscription_cycle,
      r.payment_method_id,
      r.card_brand,
      r.card_last_four,
      r.coupon_code,
      r.created_at,
      r.updated_at,
      r.version_content,
      r.version_at,
      r.version_hash,
      r.dunning_version,
      r.attempt_count,
      r.next_retry_at,
      r.items_version,
      r.items_version_content
    from given r
    where r.winner and r.id in (select id from before)
    on conflict (id)
    do update set
      last_cause = excluded.last_cause,
      version = (case when excluded.version > t.version then excluded.version else t.version end),
      order_number = (case when excluded.version > t.version then excluded.order_number else t.order_number end),
      customer_id = (case when excluded.version > t.version then excluded.customer_id else t.customer_id end),
      status = (case when excluded.version > t.version then excluded.status else t.status end),
      subtotal = (case when excluded.version > t.version then excluded.subtotal else t.subtotal end),
      discount_amount = (
        case when excluded.version > t.version then excluded.discount_amount else t.discount_amount end
      ),
      total = (case when excluded.version > t.version then excluded.total else t.total end),
      currency = (case when excluded.version > t.version then excluded.currency else t.currency end),
      description = (case when excluded.version > t.version then excluded.description else t.description end),
      failure_code = (case when excluded.version > t.version then excluded.failure_code else t.failure_code end),
      failure_reason = (case when excluded.version > t.version then excluded.failure_reason else t.failure_reason end),
      subscription_id = (
        case when excluded.version > t.version then excluded.subscription_id else t.subscription_id end
      ),
      subscription_cycle = (
        case when excluded.version > t.version then excluded.subscription_cycle else t.subscription_cycle end
      ),
      payment_method_id = (
        case when excluded.version > t.version then excluded.payment_method_id else t.payment_method_id end
      ),
      card_brand = (case when excluded.version > t.version then excluded.card_brand else t.card_brand end),
      card_last_four = (case when excluded.version > t.version then excluded.card_last_four else t.card_last_four end),
      coupon_code = (case when excluded.version > t.version then excluded.coupon_code else t.coupon_code end),
      created_at = (case when excluded.version > t.version then excluded.created_at else t.created_at end),
      updated_at = (case when excluded.version > t.version then excluded.updated_at else t.updated_at end),
      data = (case when excluded.version > t.version then excluded.data else t.data end),
      source_updated_at = (
        case when excluded.version > t.version then excluded.source_updated_at else t.source_updated_at end
      ),
      content_hash = (case when excluded.version > t.version then excluded.content_hash else t.content_hash end),
      dunning_version = (
        case when excluded.dunning_version > t.dunning_version then excluded.dunning_version else t.dunning_version end
      ),
      attempt_count = (
        case when excluded.dunning_version > t.dunning_version then excluded.attempt_count else t.attempt_count end
      ),
      next_retry_at = (
        case when excluded.dunning_version > t.dunning_version then excluded.next_retry_at else t.next_retry_at end
      ),
      items_version = (
        case when excluded.items_version > t.items_version then excluded.items_version else t.items_version end
      ),
      items = (case when excluded.items_version > t.items_version then excluded.items else t.items end)
    where
      excluded.version > t.version
      or excluded.dunning_version > t.dunning_version
      or excluded.items_version > t.items_version
    returning
      t.id,
      t.xmax = 0 as fresh,
      t.version,
      t.dunning_version,
      t.items_version,
      t.content_hash::text as after_content_hash,
      t.status::text as after_status,
      t.attempt_count::text as after_attempt_count
  )
select
  'row' as what,
  w.*,
  b.content_hash as before_content_hash,
  b.status as before_status,
  b.attempt_count as before_attempt_count,
  left(b.version, 27) as former_version,
  left(b.dunning_version, 27) as former_dunning_version,
  left(b.items_version, 27) as former_items_version
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
    select count(*) filter (where version <> '') + count(*) filter (where dunning_version <> '')
    from given
  )
