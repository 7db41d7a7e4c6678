-- The last change of each object and the event that the service documents for it; null where it documents none. It does
-- not name the event of a chargeback: any event about the order counts. For customers only the creation is a change. A
-- settlement (reports.is_settlement) is not a change, though it moves the order's time: then the last change is the
-- creation of the last transaction. Each resource whose events are documented has its own part here; no event is
-- about a transaction itself.
create or replace function reports.last_changes(p_as_of timestamptz default null)
returns table (resource text, id text, event text, at timestamptz)
language sql stable parallel safe as $$
  with state as (
    select 'order' as resource, o.id, o.status, null::bigint as cycle, null::timestamptz as period_start,
           o.created_at, o.source_updated_at as at
    from mirror.orders o
    where o.version <> '' and (p_as_of is null or not exists (
      select from mirror.versions c where c.resource = 'order' and c.id = o.id and c.recorded_at > p_as_of))
    union all
    select 'subscription', s.id, s.status, s.current_billing_cycle, s.current_period_start, s.created_at,
           s.source_updated_at
    from mirror.subscriptions s
    where s.version <> '' and (p_as_of is null or not exists (
      select from mirror.versions c where c.resource = 'subscription' and c.id = s.id and c.recorded_at > p_as_of))
    union all
    select 'customer', c.id, null, null, null, c.created_at, c.created_at
    from mirror.customers c
    where c.version <> '' and (p_as_of is null or not exists (
      select from mirror.versions v where v.resource = 'customer' and v.id = c.id and v.recorded_at > p_as_of))
    union all
    select k.resource, k.id, reports.code_of(k.data->'status'), reports.whole(k.data->'current_billing_cycle'),
           reports.moment(k.data->'current_period_start'), reports.moment(k.data->'created_at'),
           case when k.resource = 'customer' then reports.moment(k.data->'created_at') else k.source_updated_at end
    from (
      select distinct on (v.resource, v.id) v.resource, v.id, v.data, v.source_updated_at
      from mirror.versions v
      where p_as_of is not null and v.resource in ('order', 'subscription', 'customer')
        and v.recorded_at <= p_as_of and (v.resource, v.id) in (
          select c.resource, c.id from mirror.versions c
          where c.resource in ('order', 'subscription', 'customer') and c.recorded_at > p_as_of)
      order by v.resource, v.id, v.source_updated_at desc, v.observed_at desc nulls last,
               reports.status_rank(v.data->>'status') desc, v.content_hash desc
    ) k
  ), later as (
    -- Orders whose sale was confirmed later than it was made. The last snapshots of order and sale may show different
    -- steps.
    select t.order_id, max(t.created_at) as made_at
    from reports.transactions(p_as_of) t where t.order_id is not null
    group by t.order_id
    having bool_or(reports.is_settling(t.type, t.status) and (
      t.status = 'in_progress' or t.updated_at > t.created_at + reports.same_moment()
      or t.id in (select u.id from reports.read_unsettled(p_as_of) u)))
  )
  select s.resource, s.id,
         case s.resource
           when 'customer' then 'customer.created'
           when 'order' then case
             when s.status in ('partially_refunded', 'refunded') then 'order.refunded'
             when s.status like 'chargeback%' then 'order.(chargeback)'
             when s.status = 'pending' then 'order.created'
             when s.status in ('succeeded', 'failed') then 'order.' || s.status end
           else case
             when s.status = 'canceled' then 'subscription.canceled'
             when s.status not in ('active', 'failed') then null
             when s.cycle <= 1 and s.at < s.created_at + interval '5 seconds' then 'subscription.created'
             when s.cycle > 1 and s.period_start >= s.at - interval '1 hour' then 'subscription.charged'
             when s.status = 'active' then 'subscription.updated' end
         end, coalesce(w.made_at, s.at)
  from state s
  left join later w on s.resource = 'order' and w.order_id = s.id and s.status not like 'chargeback%'
    and reports.is_settlement(s.at, w.made_at)
$$;
