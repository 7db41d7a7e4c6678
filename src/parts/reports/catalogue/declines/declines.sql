-- Declined attempts of the period, by code, brand and kind of charge. An attempt is recovered if its order was paid, or
-- another one for the same cycle.
create or replace function reports.declines(p_from timestamptz, p_to timestamptz, p_zone text,
                                            p_as_of timestamptz default null)
returns table (currency text, failure_code text, code_group text, brand text, charge text, declines bigint,
               amount bigint, share_percent numeric, recovered_percent numeric)
language sql stable parallel safe as $$
  with declined as materialized (
    select t.order_id, t.currency, t.failure_code, t.amount from reports.transactions(p_as_of) t
    where t.type = 'sale' and t.status = 'failed' and t.created_at >= p_from and t.created_at < p_to
  ), paid as materialized (
    select c.subscription_id, c.cycle
    from reports.renewal_cycles(array(
      select o.subscription_id from reports.orders(p_as_of) o
      where o.id collate "C" = any(array(select d.order_id from declined d)) and o.subscription_cycle > 1), p_as_of) c
    where reports.is_paid(c.status)
  ), attempt as (
    select t.currency, coalesce(t.failure_code, o.failure_code, 'unknown') as code,
           coalesce(o.card_brand, 'unknown') as brand,
           case when o.subscription_id is null then 'one-time'
                when o.subscription_cycle > 1 then 'renewal' else 'first' end as charge,
           abs(t.amount) as amount,
           reports.is_paid(o.status) or p.cycle is not null as is_recovered
    from declined t left join reports.orders(p_as_of) o on o.id = t.order_id
    left join paid p on p.subscription_id = o.subscription_id and p.cycle = o.subscription_cycle
  )
  select a.currency, a.code, coalesce(g.code_group, 'other'), a.brand, a.charge, count(*), sum(a.amount)::bigint,
         round(100.0 * count(*) / sum(count(*)) over (partition by a.currency), 2),
         round(100.0 * count(*) filter (where a.is_recovered) / count(*), 2)
  from attempt a left join reports.decline_groups g on g.code = a.code
  group by a.currency, a.code, g.code_group, a.brand, a.charge
$$;

create or replace function reports.declines_unknown(p_from timestamptz, p_to timestamptz, p_zone text,
                                                   p_as_of timestamptz default null)
returns table (what text, n bigint)
language sql stable parallel safe as $$
  select a.what, count(*)
  from reports.transactions(p_as_of) t left join reports.orders(p_as_of) o on o.id = t.order_id
  cross join lateral (values ('attempt.amount', t.amount is null), ('attempt.currency', t.currency is null),
                             ('attempt.order', o.id is null),
                             ('attempt.code', coalesce(t.failure_code, o.failure_code) is null)) as a(what, is_unknown)
  where t.type = 'sale' and t.status = 'failed' and t.created_at >= p_from and t.created_at < p_to and a.is_unknown
  group by a.what
  union all
  select u.what, u.n from reports.unknown_movements(p_from, p_to, p_as_of) u where u.what like 'transaction.%'
$$;
