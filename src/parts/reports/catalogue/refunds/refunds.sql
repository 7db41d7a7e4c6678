-- Refunds of the period, whatever their status. Only those that succeeded count towards what was given back so far.
-- From one on whose amount is not known, that is not known either.
create or replace function reports.refunds(p_from timestamptz, p_to timestamptz, p_zone text,
                                           p_as_of timestamptz default null)
returns table (refund text, order_id text, order_number text, customer_id text, sold_on date, refunded_on date,
               refunded_at timestamptz, currency text, amount bigint, cumulative bigint, extent text, status text,
               days integer)
language sql stable parallel safe as $$
  with refund as (
    -- Few columns: those of an index, which leaves the wide rows alone.
    select t.id, t.type, t.status, t.order_id, t.currency, t.amount, t.created_at,
           case when bool_and(t.amount is not null or not reports.is_refunded(t.type, t.status)) over so_far
                then sum(case when reports.is_refunded(t.type, t.status) then abs(t.amount) else 0 end) over so_far
                end as given_back
    from reports.transactions(p_as_of) t where t.type = 'refund' and t.created_at < p_to
    window so_far as (partition by coalesce(t.order_id, t.id) order by t.created_at, t.id collate "C")
  ), sale as (
    select t.order_id, min(t.created_at) as sold_at from reports.transactions(p_as_of) t
    where reports.is_sale_that_stands(t.type, t.status) and t.order_id in (select order_id from refund)
    group by t.order_id
  )
  select r.id, r.order_id, o.order_number, coalesce(o.customer_id, (
           select t.customer_id from reports.transactions(p_as_of) t where t.id collate "C" = r.id limit 1)),
         d.sold_on, d.refunded_on, r.created_at, r.currency, abs(r.amount), r.given_back::bigint,
         case when o.id is null or r.given_back is null or o.total is null then 'unknown'
              when not reports.is_refunded(r.type, r.status) then 'none'
              when r.given_back >= o.total then 'full' else 'partial' end,
         r.status, d.refunded_on - d.sold_on
  from refund r left join reports.orders(p_as_of) o on o.id = r.order_id
  left join sale s on s.order_id = r.order_id
  cross join lateral (
    select (coalesce(s.sold_at, o.created_at) at time zone p_zone)::date as sold_on,
           (r.created_at at time zone p_zone)::date as refunded_on
    -- So that each is computed once.
    offset 0
  ) d
  where r.created_at >= p_from
$$;

create or replace function reports.refunds_unknown(p_from timestamptz, p_to timestamptz, p_zone text,
                                                  p_as_of timestamptz default null)
returns table (what text, n bigint)
language sql stable parallel safe as $$
  select a.what, count(*)
  from reports.transactions(p_as_of) t
  cross join lateral (
    values ('refund.amount', t.amount is null), ('refund.currency', t.currency is null)) as a(what, is_unknown)
  where t.type = 'refund' and t.created_at >= p_from and t.created_at < p_to and a.is_unknown
  group by a.what
  union all
  select u.what, u.n from reports.unknown_movements(p_from, p_to, p_as_of) u where u.what like 'transaction.%'
$$;
