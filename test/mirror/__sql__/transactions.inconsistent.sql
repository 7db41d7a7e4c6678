-- Finds rows with columns that no state explains (compare/hand-edited-rows.ts).
-- Generated for mirror.transactions; test/mirror/generated-sql.test.ts holds this file against it.

select cast($1 as text) as resource, id, columns
from
  (
    select
      t.id,
      array_remove(
        array[
          case when left(t.version, 27) > $2 then 'version' end,
          case when t.version = '' and t.data is not null then 'data' end,
          case when left(t.inline_version, 27) > $3 then 'inline_version' end,
          case when t.inline_version = '' and t.attempt_count is not null then 'attempt_count' end,
          case when t.inline_version = '' and t.inline is not null then 'inline' end,
          case when t.version <> '' and t.content_hash is distinct from right(t.version, 32) then 'content_hash' end,
          case when t.deleted_at is not null then 'deleted_at' end
        ]::text[],
        null
      ) as columns
    from mirror.transactions t
    where cast($4 as text) is null or t.id > $5
  ) checked
where cardinality(columns) > 0
order by id
limit $6
