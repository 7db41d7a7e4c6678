-- Finds rows with columns that no state explains (compare/hand-edited-rows.ts).
-- Generated for mirror.customers; test/mirror/generated-sql.test.ts holds this file against it.

select cast($1 as text) as resource, id, columns
from
  (
    select
      t.id,
      array_remove(
        array[
          case when left(t.version, 27) > $2 then 'version' end,
          case when t.version = '' and t.email is not null then 'email' end,
          case when t.version = '' and t.first_name is not null then 'first_name' end,
          case when t.version = '' and t.last_name is not null then 'last_name' end,
          case when t.version = '' and t.phone is not null then 'phone' end,
          case when t.version = '' and t.company is not null then 'company' end,
          case when t.version = '' and t.default_payment_method_id is not null then 'default_payment_method_id' end,
          case when t.version = '' and t.created_at is not null then 'created_at' end,
          case when t.version = '' and t.updated_at is not null then 'updated_at' end,
          case when t.version = '' and t.deleted is not null then 'deleted' end,
          case when t.version = '' and t.data is not null then 'data' end,
          case when left(t.absent_version, 27) > $3 then 'absent_version' end,
          case when t.version <> '' and t.content_hash is distinct from right(t.version, 32) then 'content_hash' end
        ]::text[],
        null
      ) as columns
    from mirror.customers t
    where cast($4 as text) is null or t.id > $5
  ) checked
where cardinality(columns) > 0
order by id
limit $6
