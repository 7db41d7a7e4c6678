-- Chargebacks that were open at any time in the period.
create or replace function reports.chargeback_list(p_from timestamptz, p_to timestamptz, p_zone text,
                                        p_as_of timestamptz default null)
returns table (chargeback text, order_id text, order_number text, brand text, sold_on date, noticed_on date,
               noticed_at timestamptz, state text, resolved_on date, currency text, amount bigint,
               refunded_before bigint)
language sql stable parallel safe as $$
  with listed as materialized (
    select c.* from reports.chargebacks(p_as_of) c
    where c.opened_at < p_to and (c.resolved_at is null or c.resolved_at >= p_from)
  )
  select c.key, c.order_id, o.order_number, coalesce(o.card_brand, 'unknown'),
         (coalesce(r.sold_at, o.created_at) at time zone p_zone)::date,
         (c.opened_at at time zone p_zone)::date, c.opened_at,
         case when c.resolved_at >= p_to then 'opened' else c.state end,
         case when c.resolved_at < p_to then (c.resolved_at at time zone p_zone)::date end, c.currency, c.amount,
         case when r.is_known then coalesce(r.refunded, 0) end
  from listed c
  -- They are few, so each order and transaction is read by itself, as in reports.chargebacks.
  left join lateral (
    select x.* from reports.orders(p_as_of) x where x.id collate "C" = c.order_id limit 1
  ) o on true
  cross join lateral (
    select sum(abs(t.amount)) filter (where reports.is_refunded(t.type, t.status)
             and t.created_at < c.opened_at)::bigint as refunded,
           coalesce(bool_and(t.amount is not null) filter (where reports.is_refunded(t.type, t.status)
             and t.created_at < c.opened_at), true) as is_known,
           min(t.created_at) filter (where t.id = c.transaction_id) as sold_at
    from mirror.transactions m
    cross join lateral (
      select x.* from reports.transactions(p_as_of) x where x.id collate "C" = m.id limit 1) t
    where m.order_id = c.order_id and t.order_id = c.order_id
  ) r
$$;

create or replace function reports.chargeback_list_unknown(p_from timestamptz, p_to timestamptz, p_zone text,
                                                           p_as_of timestamptz default null)
returns table (what text, n bigint)
language sql stable parallel safe as $$
  select a.what, count(*)
  from reports.chargeback_list(p_from, p_to, p_zone, p_as_of) c
  cross join lateral (
    values ('chargeback.amount', c.amount is null), ('chargeback.currency', c.currency is null),
           ('chargeback.refunded', c.refunded_before is null)
  ) as a(what, is_unknown)
  where a.is_unknown group by a.what
  union all
  select u.what, u.n from reports.unknown_movements(p_from, p_to, p_as_of) u where u.what like 'transaction.%'
$$;
