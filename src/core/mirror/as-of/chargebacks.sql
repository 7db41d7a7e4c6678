-- One row for each disputed sale and opening. Without p_as_of: mirror.disputed_sales. With it, those that have changed since are
-- computed again from the states recorded by then. They are few, so each order and transaction is read by itself; `collate` and `limit` keep the
-- planner from computing all of them.
create or replace function reports.chargebacks(p_as_of timestamptz default null)
returns table (key text, order_id text, transaction_id text, state text, amount bigint, currency text,
               opened_at timestamptz, resolved_at timestamptz)
language sql stable parallel safe as $$
  with touched as materialized (
    select t.key from reports.touched(p_as_of) t
  ), showing as materialized (
    select v.id as key, v.id as order_id from mirror.versions v
    where p_as_of is not null and v.recorded_at <= p_as_of and v.resource = 'order'
      and v.data->>'status' like 'chargeback%' and v.id in (select key from touched)
    union
    select coalesce(t.order_id, t.id), t.order_id
    from (
      select distinct m.id from mirror.versions v join mirror.transactions m on m.id = v.id
      where p_as_of is not null and v.recorded_at <= p_as_of and v.resource in ('transaction', 'transaction.inline')
        and v.data->>'status' like 'chargeback%' and coalesce(m.order_id, m.id) in (select key from touched)
    ) shown
    cross join lateral (
      select x.id, x.order_id from reports.transactions(p_as_of) x where x.id collate "C" = shown.id limit 1) t
  )
  select c.sale_key, c.order_id, c.transaction_id, c.state, c.amount, reports.one_spelling(c.currency), c.opened_at,
         c.resolved_at
  from mirror.disputed_sales c
  where p_as_of is null or not exists (select from touched c2 where c2.key = c.key)
  union all
  select mirror.dispute_key(k.key, sale.id, sale.nth, c.opening), k.order_id, sale.id, now.state,
         coalesce(sale.amount, case when sale.n > 1 then null else o.total end), coalesce(sale.currency, o.currency),
         began.at, case when ended.at is not null then greatest(ended.at, began.at) end
  from showing k
  left join lateral (
    select x.status, x.total, x.currency from reports.orders(p_as_of) x where x.id collate "C" = k.order_id limit 1
  ) o on true
  cross join lateral mirror.openings_of_case(k.order_id, k.key, p_as_of) c
  left join lateral (
    select s.*, count(*) over () as n
    from (
      select t.id, t.amount, t.currency, t.status, shown.first_at, shown.last_at, shown.left_at,
             row_number() over (order by shown.first_at, t.created_at, t.id collate "C") as nth,
             count(shown.first_at) over () as n_in, count(*) filter (where shown.ever) over () as n_ever, shown.ever
      from mirror.transactions m
      cross join lateral (
        select x.* from reports.transactions(p_as_of) x where x.id collate "C" = m.id limit 1) t
      cross join lateral mirror.sale_in_opening(t.id, p_as_of, c.after, c.until) shown
      where (m.order_id = k.order_id or m.id = k.key) and coalesce(t.order_id, t.id) = k.key
        and (shown.ever or reports.is_sale_that_stands(t.type, t.status))
    ) s where s.first_at is not null or (s.n_in = 0 and (s.ever or s.n_ever = 0))
  ) sale on true
  cross join lateral (
    select mirror.chargeback_state(case when c.opening = c.openings then o.status end, c.first_at, c.last_status,
                                   case when c.opening = c.openings then sale.status end) as state
  ) now
  cross join lateral (
    select case when sale.nth > 1 then coalesce(sale.first_at, c.began_at)
                when c.opening > 1 then c.began_at else least(c.first_at, sale.first_at) end as at
  ) began
  cross join lateral (
    select mirror.chargeback_ended_at(now.state, c.first_at, c.last_at, c.accepted_at, c.dismissed_at, c.left_at,
                                      sale.last_at, sale.left_at) as at
  ) ended
$$;
