-- Movements booked in the period although they belong to a month that was closed before: recorded since, or different
-- from the frozen rows. The amount is the difference.
create or replace function reports.changes_after_close(p_from timestamptz, p_to timestamptz, p_zone text,
                                            p_as_of timestamptz default null)
returns table (movement text, kind text, order_id text, happened_at timestamptz, happened_on date,
               booked_on date, currency text, amount bigint)
language sql stable parallel safe as $$
  select b.movement, b.kind, b.order_id, b.at, (b.at at time zone p_zone)::date,
         (b.booked_at at time zone p_zone)::date, b.currency, b.amount
  from reports.booked_movements(p_as_of) b where b.is_late and b.booked_at >= p_from and b.booked_at < p_to
$$;

create or replace function reports.changes_after_close_unknown(p_from timestamptz, p_to timestamptz, p_zone text,
                                                              p_as_of timestamptz default null)
returns table (what text, n bigint)
language sql stable parallel safe as $$
  -- A movement that was recorded late may have happened at any time before.
  select u.what, u.n from reports.unknown_movements('-infinity', p_to, p_as_of) u
$$;
