-- online
-- Which retries are due is asked by retry_due_at from now on (0011).

-- repeat
update mirror.orders set retry_due_at = next_retry_at where id in (
  select id from mirror.orders
  where status = 'failed' and next_retry_at is not null and retry_due_at is null limit 1000);

create index concurrently if not exists orders_retry_due_at on mirror.orders (retry_due_at)
  where retry_due_at is not null;

-- Workers of the release before read the table instead, until they are replaced.
drop index concurrently if exists mirror.orders_retry_due;
