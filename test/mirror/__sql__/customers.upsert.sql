-- Records states in the history and brings the rows up to the newest (write/upsert-statement.ts).
-- Generated for mirror.customers; test/mirror/generated-sql.test.ts holds this file against it.

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
      unnest($13::text[]) as email,
      unnest($14::text[]) as first_name,
      unnest($15::text[]) as last_name,
      unnest($16::text[]) as phone,
      unnest($17::text[]) as company,
      unnest($18::text[]) as default_payment_method_id,
      unnest($19::timestamptz[]) as created_at,
      unnest($20::boolean[]) as deleted,
      unnest($21::text[]) as absent_version,
      unnest($22::timestamptz[]) as absent_version_at,
      unnest($23::integer[]) as absent_version_position,
      unnest($24::integer[]) as absent_version_length,
      unnest($25::timestamptz[]) as absent_version_observed,
      unnest($26::text[]) as absent_version_cause,
      unnest($27::boolean[]) as absent_version_replaced,
      unnest($28::text[]) as absent_version_absent
  ),
  given as materialized (
    select
      g.id,
      g.last_cause,
      g.version_position,
      g.version_length,
      g.version_observed,
      g.version_absent,
      g.email,
      g.first_name,
      g.last_name,
      g.phone,
      g.company,
      g.default_payment_method_id,
      g.created_at,
      g.deleted,
      g.absent_version_position,
      g.absent_version_length,
      g.absent_version_observed,
      g.absent_version_absent,
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
      coalesce(g.absent_version, '') as absent_version,
      convert_from(
        substr((select bytes from blob), g.absent_version_position, g.absent_version_length), 'UTF8'
      )::jsonb as absent_version_content,
      coalesce(g.absent_version_at, left(g.absent_version, 27)::timestamptz) as absent_version_at,
      right(g.absent_version, 32) as absent_version_hash,
      coalesce(g.absent_version_cause, g.last_cause) as absent_version_cause,
      coalesce(g.absent_version_replaced, false) as absent_version_replaced
    from arrays g
  ),
  recorded as (
    insert into mirror.versions (
      resource, id, source_updated_at, content_hash, observed_at, cause, replaced_text, absent_fields, data
    )
    select
      'customer',
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
      'customer.absence',
      id,
      absent_version_at,
      absent_version_hash,
      absent_version_observed,
      absent_version_cause,
      absent_version_replaced,
      absent_version_absent::text[],
      absent_version_content
    from given
    where absent_version <> ''
    on conflict (resource, id, source_updated_at, content_hash, twin)
    do nothing
    returning resource, id, source_updated_at, content_hash
  ),
  before as materialized (
    select stored.*
    from
      given g cross join lateral (
        select t.id, t.content_hash::text, t.deleted_at::text, t.version, t.absent_version
        from mirror.customers t
        where t.id = g.id offset 0 for
        update
      ) stored
    -- Counting completes the history before the first row is locked: one order of locks for all. Each row is looked
    -- up by itself (offset 0): a plan made while the table was small would read all of it.
    where g.winner and (select count(*) from recorded) >= 0
  ),
  made as (
    insert into mirror.customers as t (
      id, last_cause, version, email, first_name, last_name, phone, company, default_payment_method_id, created_at,
      updated_at, deleted, data, source_updated_at, content_hash, absent_version, deleted_at
    )
    select
      r.id,
      r.last_cause,
      r.version,
      r.email,
      r.first_name,
      r.last_name,
      r.phone,
      r.company,
      r.default_payment_method_id,
      r.created_at,
      r.updated_at,
      r.deleted,
      r.version_content,
      r.version_at,
      r.version_hash,
      r.absent_version,
      case
        when r.deleted then r.version_at
        when left(r.absent_version, 27) > greatest(left(r.version, 27) collate "C", substr(r.version, 29, 27))
          then left(r.absent_version, 27)::timestamptz
      end
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
      t.absent_version,
      t.content_hash::text as after_content_hash,
      t.deleted_at::text as after_deleted_at
  ),
  written as (
    insert into mirror.customers as t (
      id, last_cause, version, email, first_name, last_name, phone, company, default_payment_method_id, created_at,
      updated_at, deleted, data, source_updated_at, content_hash, absent_version, deleted_at
    )
    select
      r.id,
      r.last_cause,
      r.version,
      r.email,
      r.first_name,
      r.last_name,
      r.phone,
      r.company,
      r.default_payment_method_id,
      r.created_at,
      r.updated_at,
      r.deleted,
      r.version_content,
      r.version_at,
      r.version_hash,
      r.absent_version,
      case
        when r.deleted then r.version_at
        when left(r.absent_version, 27) > greatest(left(r.version, 27) collate "C", substr(r.version, 29, 27))
          then left(r.absent_version, 27)::timestamptz
      end
    from given r
    where r.winner and r.id in (select id from before)
    on conflict (id)
    do update set
      last_cause = excluded.last_cause,
      version = (case when excluded.version > t.version then excluded.version else t.version end),
      email = (case when excluded.version > t.version then excluded.email else t.email end),
      first_name = (case when excluded.version > t.version then excluded.first_name else t.first_name end),
      last_name = (case when excluded.version > t.version then excluded.last_name else t.last_name end),
      phone = (case when excluded.version > t.version then excluded.phone else t.phone end),
      company = (case when excluded.version > t.version then excluded.company else t.company end),
      default_payment_method_id = (
        case
          when excluded.version > t.version then excluded.default_payment_method_id
          else t.default_payment_method_id
        end
      ),
      created_at = (case when excluded.version > t.version then excluded.created_at else t.created_at end),
      updated_at = (case when excluded.version > t.version then excluded.updated_at else t.updated_at end),
      deleted = (case when excluded.version > t.version then excluded.deleted else t.deleted end),
      data = (case when excluded.version > t.version then excluded.data else t.data end),
      source_updated_at = (
        case when excluded.version > t.version then excluded.source_updated_at else t.source_updated_at end
      ),
      content_hash = (case when excluded.version > t.version then excluded.content_hash else t.content_hash end),
      absent_version = (
        case when excluded.absent_version > t.absent_version then excluded.absent_version else t.absent_version end
      ),
      deleted_at = case
        when (case when excluded.version > t.version then excluded.deleted else t.deleted end)
          then (case when excluded.version > t.version then excluded.source_updated_at else t.source_updated_at end)
        when left(
          (case when excluded.absent_version > t.absent_version then excluded.absent_version else t.absent_version end),
          27
        ) > greatest(
          left((case when excluded.version > t.version then excluded.version else t.version end), 27) collate "C",
          substr((case when excluded.version > t.version then excluded.version else t.version end), 29, 27)
        )
          then left(
            (
              case
                when excluded.absent_version > t.absent_version then excluded.absent_version
                else t.absent_version
              end
            ),
            27
          )::timestamptz
      end
    where excluded.version > t.version or excluded.absent_version > t.absent_version
    returning
      t.id,
      t.xmax = 0 as fresh,
      t.version,
      t.absent_version,
      t.content_hash::text as after_content_hash,
      t.deleted_at::text as after_deleted_at
  )
select
  'row' as what,
  w.*,
  b.content_hash as before_content_hash,
  b.deleted_at as before_deleted_at,
  left(b.version, 27) as former_version,
  left(b.absent_version, 27) as former_absent_version
from (select * from made union all select * from written) w
left join before b using (id)
union all
select 'missed', r.id, null, null, null, null, null, null, null, null, null
from given r
where r.winner and r.id not in (select id from before) and r.id not in (select id from made)
union all
select 'count', count(*)::text, null, null, null, null, null, null, null, null, null
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
  null
from recorded
where
  (select count(*) from recorded) < (
    select count(*) filter (where version <> '') + count(*) filter (where absent_version <> '')
    from given
  )
