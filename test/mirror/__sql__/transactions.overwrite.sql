-- Has a row yield to what a read shows, when a person decided so (write/overwrite.ts).
-- Generated for mirror.transactions; test/mirror/generated-sql.test.ts holds this file against it.

update mirror.transactions
set
  version = '',
  inline_version = case when left(inline_version, 27) > $1 or inline_version = '' then '' else inline_version end,
  attempt_count = case when left(inline_version, 27) > $2 or inline_version = '' then null else attempt_count end,
  inline = case when left(inline_version, 27) > $3 or inline_version = '' then null else inline end,
  deleted_at = null
where id = $4
