-- Not inlined, and declared cheap: few sales are unsettled, but the planner takes a look-up for each transaction into
-- account. Next to that everything else seems free, and it sorted a million movements to sum them.
create or replace function reports.status_of_order(p_order text, p_as_of timestamptz default null) returns text
language plpgsql stable parallel safe cost 1 as $$
begin
    return (select o.status from reports.orders(p_as_of) o where o.id collate "C" = p_order limit 1);
end
$$;

-- Movements of money: sales and reversals are positive, refunds and chargebacks negative. The interface does not say
-- which sign a refund has, so amounts are taken as absolute and signed here. A sale counts once it is paid, settled or
-- not, so its settlement moves nothing. A transaction without a date cannot be booked and is left out. Amounts are null
-- where they are not known; a currency that is not known is xxx.
create or replace function reports.movements(p_as_of timestamptz default null)
returns table (movement text, kind text, object_id text, order_id text, at timestamptz, currency text,
               amount bigint)
language sql stable parallel safe as $$
  select t.type || ':' || t.id, t.type, t.id, t.order_id, t.created_at, coalesce(t.currency, 'xxx'),
         case t.type when 'sale' then 1 else -1 end * abs(t.amount)
  from reports.transactions(p_as_of) t
  where t.created_at is not null and case
      when reports.is_captured(t.type, t.status) or reports.is_refunded(t.type, t.status) then true
      when reports.is_unsettled(t.type, t.status) then reports.is_paid(reports.status_of_order(t.order_id, p_as_of))
      else false end
  union all
  select m.kind || ':' || c.key, m.kind, c.key, c.order_id, m.at, coalesce(c.currency, 'xxx'),
         m.amount
  from (
    -- A sale is lost once: where it is disputed again after it was lost, that takes the loss back.
    select x.*, case when x.state = 'dismissed' then x.resolved_at
                     when x.state = 'accepted' then lead(x.opened_at) over (
                       partition by x.order_id, x.transaction_id order by x.opened_at, x.key) end as back_at
    from reports.chargebacks(p_as_of) x
  ) c
  cross join lateral (
    values ('chargeback', c.opened_at, -c.amount), ('reversal', c.back_at, c.amount)
  ) as m(kind, at, amount)
  where m.at is not null
$$;

-- The unknown parts of the sums of movements from p_from until p_to: movements without an amount, which add nothing,
-- movements in no currency's sum, and movements in no sum at all (of any time, as they have no date).
create or replace function reports.unknown_movements(p_from timestamptz, p_to timestamptz,
                                                     p_as_of timestamptz default null)
returns table (what text, n bigint)
language sql stable parallel safe as $$
  select m.kind || lacks.what, count(*)
  from reports.movements(p_as_of) m
  cross join lateral (values ('.amount', m.amount is null), ('.currency', m.currency = 'xxx')) as lacks(what, is_so)
  where (m.amount is null or m.currency = 'xxx') and lacks.is_so and m.at >= p_from and m.at < p_to
  group by m.kind, lacks.what
  union all
  select 'transaction.' || case when t.type is null then 'type' when t.status is null then 'status'
                                else 'created_at' end, count(*)
  from reports.transactions(p_as_of) t where t.type is null or t.status is null or t.created_at is null group by 1
  union all
  select 'sale.order', count(*)
  from reports.transactions(p_as_of) t
  where reports.is_unsettled(t.type, t.status) and t.created_at >= p_from and t.created_at < p_to
    and reports.status_of_order(t.order_id, p_as_of) is null
$$;
