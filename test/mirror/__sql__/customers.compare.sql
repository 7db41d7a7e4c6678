-- Holds states against the stored rows, where something may differ (compare/compare-states.ts).
-- Generated for mirror.customers; test/mirror/generated-sql.test.ts holds this file against it.

with
  blob as materialized (select $1::bytea as bytes),
  given as materialized (
    select
      g.*,
      convert_from(
        substr((select bytes from blob), g.version_position, g.version_length), 'UTF8'
      )::jsonb as version_content,
      convert_from(
        substr((select bytes from blob), g.absent_version_position, g.absent_version_length), 'UTF8'
      )::jsonb as absent_version_content
    from
      unnest(
        $2::text[], $3::boolean[], $4::text[], $5::text[], $6::timestamptz[], $7::timestamptz[], $8::text[], $9::text[],
        $10::boolean[], $11::integer[], $12::integer[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[],
        $18::text[], $19::timestamptz[], $20::timestamptz[], $21::boolean[], $22::text[], $23::timestamptz[],
        $24::timestamptz[], $25::text[], $26::text[], $27::boolean[], $28::integer[], $29::integer[]
      ) as g(
        id, winner, last_cause, version, version_at, version_observed, version_hash, version_cause, version_replaced,
        version_position, version_length, email, first_name, last_name, phone, company, default_payment_method_id,
        created_at, updated_at, deleted, absent_version, absent_version_at, absent_version_observed,
        absent_version_hash, absent_version_cause, absent_version_replaced, absent_version_position,
        absent_version_length
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
          case when (t.version <> '' and t.email is distinct from r.email) then 'email' end,
          case when (t.version <> '' and t.first_name is distinct from r.first_name) then 'first_name' end,
          case when (t.version <> '' and t.last_name is distinct from r.last_name) then 'last_name' end,
          case when (t.version <> '' and t.phone is distinct from r.phone) then 'phone' end,
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
      or (t.version <> '' and t.email is distinct from r.email)
      or (t.version <> '' and t.first_name is distinct from r.first_name)
      or (t.version <> '' and t.last_name is distinct from r.last_name)
      or (t.version <> '' and t.phone is distinct from r.phone)
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
