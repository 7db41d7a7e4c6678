-- One row for each renewal of these subscriptions. A cycle normally has one order. Should the service make another one
-- for a retry, all of them are one renewal: that of the order which was paid, else of the newest (`order_id`, whose
-- status, total and currency count). `mergedOrders` in src/core/mirror/dunning/declined-orders.ts does the same of timelines.
create or replace function reports.renewal_cycles(p_subscriptions text[], p_as_of timestamptz default null)
returns table (subscription_id text, cycle bigint, order_id text, orders text[], status text, total bigint,
               currency text, began_at timestamptz)
language sql stable parallel safe as $$
  select distinct on (o.subscription_id, o.subscription_cycle) o.subscription_id, o.subscription_cycle, o.id,
         array_agg(o.id) over renewal, o.status, o.total, o.currency, min(o.created_at) over renewal
  from reports.orders(p_as_of) o
  where o.subscription_id collate "C" = any(p_subscriptions) and o.subscription_cycle > 1
  window renewal as (partition by o.subscription_id, o.subscription_cycle)
  order by o.subscription_id, o.subscription_cycle, (reports.is_paid(o.status) is true) desc,
           o.created_at desc nulls last, o.id collate "C" desc
$$;
