-- Renewals whose charge was declined, by the week of the first decline. Only subscriptions with an order that was
-- declined within the period are read, by arrays: those use the indexes, in a mirror of any size.
create or replace function reports.dunning_funnel(p_from timestamptz, p_to timestamptz, p_zone text,
                                       p_as_of timestamptz default null)
returns table (week date, currency text, entered bigint, entered_amount bigint, recovered_at_2 bigint,
               recovered_at_3 bigint, recovered_at_4 bigint, recovered_later bigint, recovered bigint,
               recovered_amount bigint, lost bigint, lost_amount bigint, in_progress bigint,
               in_progress_amount bigint, recovery_percent numeric, median_days numeric)
language sql stable parallel safe as $$
  with declined as materialized (
    select distinct t.order_id as id from reports.transactions(p_as_of) t
    where t.type = 'sale' and t.status = 'failed' and t.created_at >= p_from and t.created_at < p_to
  ), charged as materialized (
    select distinct o.subscription_id, o.subscription_cycle as cycle from reports.orders(p_as_of) o
    where o.id collate "C" = any(array(select d.id from declined d))
      and o.subscription_id is not null and o.subscription_cycle > 1
  ), subscription as materialized (
    select s.id, s.status from reports.subscription_states(p_as_of) s
    where s.id collate "C" = any(array(select c.subscription_id from charged c)) and s.is_last
  ), renewal as materialized (
    select c.order_id as id, c.orders, c.currency, c.total, c.status, s.status as subscription_status
    from reports.renewal_cycles(array(select c.subscription_id from charged c), p_as_of) c
    join charged using (subscription_id, cycle)
    left join subscription s on s.id = c.subscription_id
  ), made as materialized (
    select r.id as renewal, made.id from renewal r cross join lateral unnest(r.orders) as made(id)
  ), attempt as (
    select m.renewal, t.status as outcome, t.created_at,
           row_number() over (partition by m.renewal order by t.created_at, t.id collate "C") as nth
    from reports.transactions(p_as_of) t join made m on m.id = t.order_id
    where t.type = 'sale' and t.order_id collate "C" = any(array(select m.id from made m))
  ), tried as (
    select r.currency, r.total, r.status, r.subscription_status,
           min(a.created_at) filter (where a.outcome = 'failed') as declined_at,
           min(a.nth) filter (where a.outcome <> 'failed') as nth,
           min(a.created_at) filter (where a.outcome <> 'failed') as recovered_at
    from attempt a join renewal r on r.id = a.renewal
    group by r.id, r.currency, r.total, r.status, r.subscription_status
  ), entered as (
    select date_trunc('week', t.declined_at at time zone p_zone)::date as week, t.currency, t.total, t.nth,
           extract(epoch from t.recovered_at - t.declined_at) / 86400 as days,
           reports.dunning_state(t.status, t.subscription_status) as state
    from tried t where t.declined_at >= p_from and t.declined_at < p_to
  )
  select e.week, e.currency, count(*), sum(e.total)::bigint,
         count(*) filter (where e.state = 'recovered' and e.nth = 2),
         count(*) filter (where e.state = 'recovered' and e.nth = 3),
         count(*) filter (where e.state = 'recovered' and e.nth = 4),
         count(*) filter (where e.state = 'recovered' and (e.nth is null or e.nth not between 2 and 4)),
         count(*) filter (where e.state = 'recovered'),
         coalesce(sum(e.total) filter (where e.state = 'recovered'), 0)::bigint,
         count(*) filter (where e.state = 'lost'), coalesce(sum(e.total) filter (where e.state = 'lost'), 0)::bigint,
         count(*) filter (where e.state = 'in progress'),
         coalesce(sum(e.total) filter (where e.state = 'in progress'), 0)::bigint,
         round(100.0 * count(*) filter (where e.state = 'recovered') / count(*), 2),
         round((percentile_cont(0.5) within group (order by e.days) filter (where e.state = 'recovered'))::numeric, 1)
  from entered e group by e.week, e.currency
$$;

create or replace function reports.dunning_funnel_unknown(p_from timestamptz, p_to timestamptz, p_zone text,
                                                         p_as_of timestamptz default null)
returns table (what text, n bigint)
language sql stable parallel safe as $$
  with declined as materialized (
    select distinct t.order_id as id from reports.transactions(p_as_of) t
    where t.type = 'sale' and t.status = 'failed' and t.created_at >= p_from and t.created_at < p_to
  ), renewal as materialized (
    select o.* from reports.orders(p_as_of) o
    where o.id collate "C" = any(array(select d.id from declined d))
      and o.subscription_id is not null and o.subscription_cycle > 1
  )
  select a.what, count(*)
  from renewal r
  cross join lateral (
    values ('renewal.amount', r.total is null), ('renewal.currency', r.currency is null),
           ('renewal.subscription', not reports.is_paid(r.status) and not exists (
             select from mirror.versions v where v.resource = 'subscription' and v.id = r.subscription_id
               and (p_as_of is null or v.recorded_at <= p_as_of)))) as a(what, is_unknown)
  where a.is_unknown group by a.what
  union all
  select 'attempt.order', count(*)
  from declined d
  where d.id is null or not exists (select from reports.orders(p_as_of) o where o.id = d.id)
  union all
  select u.what, u.n from reports.unknown_movements(p_from, p_to, p_as_of) u where u.what like 'transaction.%'
$$;
