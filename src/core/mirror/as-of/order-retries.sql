-- When the service retries an order: only events show it (`order.dunning`), so no read takes part in the order of
-- states.
create or replace function reports.order_retries(p_as_of timestamptz default null)
returns table (id text, next_retry_at timestamptz)
language sql stable parallel safe as $$
  select o.id, o.next_retry_at from mirror.orders o
  where o.next_retry_at is not null and (p_as_of is null or not exists (
    select from mirror.versions c where c.resource = 'order.dunning' and c.id = o.id and c.recorded_at > p_as_of))
  union all
  select k.id, reports.moment(k.data->'next_retry_at')
  from (
    select distinct on (v.id) v.id, v.data from mirror.versions v
    where p_as_of is not null and v.resource = 'order.dunning' and v.recorded_at <= p_as_of
      and v.id in (
        select c.id from mirror.versions c where c.resource = 'order.dunning' and c.recorded_at > p_as_of)
    order by v.id, v.source_updated_at desc, reports.whole(v.data->'attempt_count') desc nulls last,
             v.content_hash desc
  ) k
$$;
