-- Every movement with the time at which it is booked. In closed months it stays as it was frozen; in open months, and
-- before the first close, it is booked when it happened. A change that became known after its month was closed is
-- booked as a difference at the start of the first open month (`is_late`), and `at` still has the time of the movement.
-- An amount that is no longer known stays as it was frozen; one that was never known adds nothing
-- (reports.unknown_movements). A currency that was frozen in another spelling is the same currency.
create or replace function reports.booked_movements(p_as_of timestamptz default null)
returns table (movement text, kind text, object_id text, order_id text, at timestamptz, booked_at timestamptz,
               is_late boolean, currency text, amount bigint)
language sql stable parallel safe as $$
  select m.movement, m.kind, m.object_id, m.order_id, m.at, m.at, false, m.currency,
         coalesce(m.amount, 0)
  from reports.movements(p_as_of) m
  where not exists (select from reports.closes c where c.closed_at <= coalesce(p_as_of, 'infinity'))
  union all
  select f.movement, f.kind, f.object_id, f.order_id, f.at, f.booked_at, f.is_late,
         reports.one_spelling(f.currency), f.amount
  from reports.closed_movements f join reports.closes c on c.id = f.close
  where c.closed_at <= coalesce(p_as_of, 'infinity')
  union all
  select coalesce(m.movement, f.movement), coalesce(m.kind, f.kind), coalesce(m.object_id, f.object_id),
         coalesce(m.order_id, f.order_id), coalesce(m.at, f.at),
         case when f.movement is null and m.at >= last.to_at then m.at else last.to_at end,
         f.movement is not null or m.at < last.to_at, coalesce(m.currency, f.currency),
         coalesce(m.amount, case when m.movement is not null then f.amount end, 0) - coalesce(f.amount, 0)
  from (select max(c.to_at) as to_at from reports.closes c where c.closed_at <= coalesce(p_as_of, 'infinity')
        having max(c.to_at) is not null) last
  cross join (
    reports.movements(p_as_of) m
    full join (
      select b.movement, b.kind, b.object_id, b.order_id, reports.one_spelling(b.currency) as currency,
             min(b.at) as at, sum(b.amount)::bigint as amount
      from reports.closed_movements b join reports.closes c on c.id = b.close
      where c.closed_at <= coalesce(p_as_of, 'infinity')
      group by b.movement, b.kind, b.object_id, b.order_id, reports.one_spelling(b.currency)
    ) f on f.movement = m.movement and f.currency = m.currency)
  where coalesce(m.amount, case when m.movement is not null then f.amount end, 0) <> coalesce(f.amount, 0)
$$;
