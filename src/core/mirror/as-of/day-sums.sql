-- The mirror's sums of each day, to be compared with those of the service's list (reconcile.daily_sums). A transaction
-- without currency, type, status or amount is left out on both sides.
create or replace function reports.day_sums(p_from timestamptz, p_to timestamptz, p_zone text,
                                            p_as_of timestamptz default null)
returns table (day date, currency text, type text, status text, n bigint, total numeric, changed_at timestamptz)
language sql stable parallel safe as $$
  select (t.created_at at time zone p_zone)::date, t.currency, t.type, t.status, count(*), sum(t.amount),
         max(t.updated_at)
  from reports.transactions(p_as_of) t
  where t.created_at >= p_from and t.created_at < p_to
    and t.currency is not null and t.type is not null and t.status is not null and t.amount is not null
  group by 1, 2, 3, 4
$$;

-- Compares the service's sums of a day, read at p_read_at, with the mirror's, which last changed at p_changed_at.
create or replace function reports.sums_outcome(p_service_count bigint, p_service_sum numeric, p_mirror_count bigint,
                                                p_mirror_sum numeric, p_changed_at timestamptz, p_read_at timestamptz)
returns text language sql immutable parallel safe as $$
  select case when p_service_count = p_mirror_count and p_service_sum = p_mirror_sum then 'equal'
              when p_changed_at >= p_read_at then 'changed since' else 'differs' end
$$;
