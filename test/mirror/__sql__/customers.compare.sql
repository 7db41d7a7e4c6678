-- Holds states against the stored rows, where something may differ (compare/compare-states.ts).
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
  )
select
  r.id,
  t.id is not null as found,
  case
    when r.version <> ''
    and t.id is not null
      then array_remove(
        array[
          case when (t.version <> '' and left(t.email, 500) is distinct from r.email) then 'email' end,
          case when (t.version <> '' and t.first_name is distinct from r.first_name) then 'first_name' end,
          case when (t.version <> '' and t.last_name is distinct from r.last_name) then 'last_name' end,
          case when (t.version <> '' and left(t.phone, 500) is distinct from r.phone) then 'phone' end,
          case when (t.version <> '' and t.company is distinct from r.company) then 'company' end,
          case
            when (t.version <> '' and t.default_payment_method_id is distinct from r.default_payment_method_id)
              then 'default_payment_method_id'
          end,
          case when (t.version <> '' and t.created_at is distinct from r.created_at) then 'created_at' end,
          case when (t.version <> '' and t.updated_at is distinct from r.updated_at) then 'updated_at' end,
          case when (t.version <> '' and t.deleted is distinct from r.deleted) then 'deleted' end,
          case when (t.version <> '' and t.data is distinct from r.version_content) then '(content)' end,
          case
            when (t.version <> '' and t.source_updated_at is distinct from r.version_at)
              then 'source_updated_at'
          end,
          case when (t.version <> '' and left(t.version, 27) <> left(r.version, 27)) then 'version' end,
          case
            when t.deleted_at is distinct from case when r.version_content -> 'deleted' = 'true' then r.version_at end
              then 'deleted_at'
          end,
          case
            when t.deleted_at is distinct from (
              case
                when t.deleted then t.source_updated_at
                when left(t.absent_version, 27) > greatest(left(t.version, 27) collate "C", substr(t.version, 29, 27))
                  then left(t.absent_version, 27)::timestamptz
              end
            )
              then 'deleted_at'
          end
        ]::text[],
        null
      )
  end as version_differing,
  case
    when r.absent_version <> ''
    and t.id is not null
      then array_remove(
        array[
          case
            when t.deleted_at is distinct from (
              case
                when t.deleted then t.source_updated_at
                when left(t.absent_version, 27) > greatest(left(t.version, 27) collate "C", substr(t.version, 29, 27))
                  then left(t.absent_version, 27)::timestamptz
              end
            )
              then 'deleted_at'
          end
        ]::text[],
        null
      )
  end as absent_version_differing,
  to_jsonb(t) as stored
from given r
left join mirror.customers t on t.id = r.id
where r.winner
and (
  t.id is null
  or (
    r.version <> ''
    and (
      t.version = ''
      or (t.version <> '' and left(t.email, 500) is distinct from r.email)
      or (t.version <> '' and t.first_name is distinct from r.first_name)
      or (t.version <> '' and t.last_name is distinct from r.last_name)
      or (t.version <> '' and left(t.phone, 500) is distinct from r.phone)
      or (t.version <> '' and t.company is distinct from r.company)
      or (t.version <> '' and t.default_payment_method_id is distinct from r.default_payment_method_id)
      or (t.version <> '' and t.created_at is distinct from r.created_at)
      or (t.version <> '' and t.updated_at is distinct from r.updated_at)
      or (t.version <> '' and t.deleted is distinct from r.deleted)
      or (t.version <> '' and t.data is distinct from r.version_content)
      or (t.version <> '' and t.source_updated_at is distinct from r.version_at)
      or (t.version <> '' and left(t.version, 27) <> left(r.version, 27))
      or t.deleted_at is distinct from case when r.version_content -> 'deleted' = 'true' then r.version_at end
      or t.deleted_at is distinct from (
        case
          when t.deleted then t.source_updated_at
          when left(t.absent_version, 27) > greatest(left(t.version, 27) collate "C", substr(t.version, 29, 27))
            then left(t.absent_version, 27)::timestamptz
        end
      )
    )
  )
  or (
    r.absent_version <> ''
    and (
      t.absent_version = ''
      or t.deleted_at is distinct from (
        case
          when t.deleted then t.source_updated_at
          when left(t.absent_version, 27) > greatest(left(t.version, 27) collate "C", substr(t.version, 29, 27))
            then left(t.absent_version, 27)::timestamptz
        end
      )
    )
  )
)
