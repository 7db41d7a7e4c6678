-- Sales that were paid before the end of the period and settled after it, or are not settled yet.
create or replace function reports.cut_off(p_from timestamptz, p_to timestamptz, p_zone text,
                                           p_as_of timestamptz default null)
returns table (sale text, order_id text, order_number text, paid_on date, paid_at timestamptz, status text,
               settled_on date, days integer, currency text, amount bigint)
language sql stable parallel safe as $$
  select s.id, s.order_id, o.order_number, (s.paid_at at time zone p_zone)::date, s.paid_at, s.status,
         case when reports.is_sale_that_stands('sale', s.status) then (s.ended_at at time zone p_zone)::date end,
         ((p_to - interval '1 microsecond') at time zone p_zone)::date - (s.paid_at at time zone p_zone)::date,
         s.currency, s.amount
  from reports.settlement_spans(array[p_to], p_as_of) s
  left join reports.orders(p_as_of) o on o.id = s.order_id
  where s.paid_at < p_to and (s.ended_at is null or s.ended_at >= p_to)
$$;

create or replace function reports.cut_off_unknown(p_from timestamptz, p_to timestamptz, p_zone text,
                                                  p_as_of timestamptz default null)
returns table (what text, n bigint)
language sql stable parallel safe as $$
  select a.what, count(*)
  from reports.cut_off(p_from, p_to, p_zone, p_as_of) s
  cross join lateral (
    values ('sale.amount', s.amount is null), ('sale.currency', s.currency = 'xxx')) as a(what, is_unknown)
  where a.is_unknown group by a.what
  union all
  select u.what, u.n from reports.unknown_movements('-infinity', p_to, p_as_of) u
  where u.what = 'sale.order' or u.what like 'transaction.%'
$$;
