-- Reads stored rows as few texts, to see that they are equal (compare/stored-rows.ts).
-- Generated for mirror.customers; test/mirror/generated-sql.test.ts holds this file against it.

select
  t.id as id,
  row(
    left(t.version, 27), t.email, t.first_name, t.last_name, t.phone, t.company, t.default_payment_method_id,
    t.created_at at time zone 'UTC', t.updated_at at time zone 'UTC', t.deleted, t.source_updated_at at time zone 'UTC'
  )::text as version_columns,
  t.data as data,
  row(left(t.absent_version, 27))::text as absent_version_columns,
  true
  and t.deleted_at is not distinct from (
    case when t.data -> 'deleted' = 'true' then t.source_updated_at end
  ) as shown_hold,
  true
  and t.deleted_at is not distinct from (
    case
      when t.deleted then t.source_updated_at
      when left(t.absent_version, 27) > greatest(left(t.version, 27) collate "C", substr(t.version, 29, 27))
        then left(t.absent_version, 27)::timestamptz
    end
  )
  and not exists (select from mirror.erasures e where e.customer_id = t.id) as holds
from mirror.customers t
where t.id = any($1::text[])
