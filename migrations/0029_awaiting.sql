-- online
-- The boards of dunning and chargebacks read what waits by these, however many orders there are.

-- repeat
update mirror.orders set awaits = 'payment' where id in (
  select id from mirror.orders
  where subscription_cycle > 1 and status = 'failed' and awaits is null limit 1000);

-- repeat
update mirror.orders set awaits = 'answer' where id in (
  select id from mirror.orders
  where id = any(array(select v.id from mirror.versions v
                       where v.resource = 'order' and v.data->>'status' like 'chargeback%'))
    and status like 'chargeback%' and status not in ('chargeback_accepted', 'chargeback_dismissed')
    and awaits is null limit 1000);

create index concurrently if not exists orders_awaiting on mirror.orders (awaits, id) include (created_at)
  where awaits is not null;

-- Sales that show a chargeback: of some, no order does. An update that changes a status of theirs enters
-- transactions_reported anyway.
create index concurrently if not exists transactions_disputed on mirror.transactions (order_id, id)
  where status like 'chargeback%';

-- States that show a chargeback, of an object and by time; in place of versions_chargeback, which has no times.
create index concurrently if not exists versions_disputed on mirror.versions (resource, id, source_updated_at)
  where data->>'status' like 'chargeback%';
create index concurrently if not exists versions_disputed_at on mirror.versions (source_updated_at) include (resource, id)
  where data->>'status' like 'chargeback%';
drop index concurrently if exists mirror.versions_chargeback;
