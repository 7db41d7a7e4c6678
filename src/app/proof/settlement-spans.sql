-- For sales that may have been unsettled at one of p_times (ascending): from when until when they were. A sale was
-- unsettled at a time t if `paid_at < t` and `ended_at` is null or not before t. It ends when the service first shows
-- the sale as settled. Of a sale that was first seen settled only that change is known; it counts as the settlement if
-- it came within a week of the sale. A sale that failed or was voided instead counts only if a closed month booked it,
-- until it was taken back there.
create or replace function reports.settlement_spans(p_times timestamptz[], p_as_of timestamptz default null)
returns table (id text, order_id text, status text, currency text, amount bigint, paid_at timestamptz,
               ended_at timestamptz)
language sql stable parallel safe as $$
  with candidate as (
    select t.id, t.type, t.order_id, t.status, coalesce(t.currency, 'xxx') as currency,
           abs(t.amount) as amount, t.created_at
    from reports.transactions(p_as_of) t
    where t.type = 'sale' and t.created_at < p_times[cardinality(p_times)]
      and (reports.is_unsettled(t.type, t.status)
           or width_bucket(t.created_at, p_times) < width_bucket(t.updated_at, p_times)
           or t.id in (select u.id from reports.read_unsettled(p_as_of) u))
  ), known as (
    select c.*, h.was_unsettled, h.settled_at
    from candidate c
    cross join lateral (
      select bool_or(reports.is_unsettled(c.type, v.data->>'status')) as was_unsettled,
             min(v.source_updated_at) filter (where reports.is_captured(c.type, v.data->>'status')) as settled_at
      from mirror.versions v
      where v.resource in ('transaction', 'transaction.inline') and v.id = c.id
        and (p_as_of is null or v.recorded_at <= p_as_of)
    ) h
  ), closed as (
    select max(c.to_at) as to_at from reports.closes c where c.closed_at <= coalesce(p_as_of, 'infinity')
  ), booked as (
    select f.object_id, min(f.booked_at) filter (where f.amount < 0) as taken_back_at
    from reports.closed_movements f join reports.closes c on c.id = f.close
    where c.closed_at <= coalesce(p_as_of, 'infinity') and f.kind = 'sale'
      and f.object_id in (select k.id from known k where not reports.is_sale_that_stands(k.type, k.status))
    group by f.object_id
  )
  select k.id, k.order_id, k.status, k.currency, k.amount, k.created_at, e.ended_at
  from known k
  left join booked b on b.object_id = k.id
  cross join closed
  cross join lateral (
    select case
      when reports.is_unsettled(k.type, k.status) then null
      when k.was_unsettled and k.settled_at is not null then k.settled_at
      when not reports.is_sale_that_stands(k.type, k.status) then coalesce(b.taken_back_at, closed.to_at)
      when k.settled_at < k.created_at + interval '7 days' and (
        select v.data->>'status' from mirror.versions v
        where v.resource in ('transaction', 'transaction.inline') and v.id collate "C" = k.id
          and (p_as_of is null or v.recorded_at <= p_as_of)
        order by v.source_updated_at, reports.status_rank(v.data->>'status'), v.data->>'status' collate "C" limit 1
      ) = 'succeeded' then k.settled_at
      else k.created_at end as ended_at
  ) e
  where case
      when reports.is_unsettled(k.type, k.status) then reports.is_paid((
        select o.status from reports.orders(p_as_of) o where o.id collate "C" = k.order_id limit 1))
      when not reports.is_sale_that_stands(k.type, k.status) and k.settled_at is null then b.object_id is not null
      -- A sale that is settled immediately, as in the sandbox, was never unsettled.
      else e.ended_at > k.created_at + reports.same_moment() end
$$;
