-- Has a row yield to what a read shows, when a person decided so (write/overwrite.ts).
-- Generated for mirror.subscriptions; test/mirror/generated-sql.test.ts holds this file against it.

update mirror.subscriptions
set
  version = '',
  detail_version = case when left(detail_version, 27) > $1 or detail_version = '' then '' else detail_version end,
  failure_reason = case when left(detail_version, 27) > $2 or detail_version = '' then null else failure_reason end,
  attempt_count = case when left(detail_version, 27) > $3 or detail_version = '' then null else attempt_count end,
  next_retry_at = case when left(detail_version, 27) > $4 or detail_version = '' then null else next_retry_at end,
  deleted_at = null
where id = $5
