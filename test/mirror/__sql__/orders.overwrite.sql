-- Has a row yield to what a read shows, when a person decided so (write/overwrite.ts).
-- Generated for mirror.orders; test/mirror/generated-sql.test.ts holds this file against it.

update mirror.orders
set
  version = '',
  dunning_version = case when left(dunning_version, 27) > $1 or dunning_version = '' then '' else dunning_version end,
  attempt_count = case when left(dunning_version, 27) > $2 or dunning_version = '' then null else attempt_count end,
  next_retry_at = case when left(dunning_version, 27) > $3 or dunning_version = '' then null else next_retry_at end,
  items_version = '',
  deleted_at = null
where id = $4
