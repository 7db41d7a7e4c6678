-- Compares the sums of each day with those of the service's list, by the rules of the invariant "control"
-- (src/parts/reconcile/invariants/sums.ts). A day is compared with the newest slice that shows all of it. The service decides
-- the sign: where its sum is negative, both sums are negated, so refunds are positive either way.
create or replace function reports.daily_control(p_from timestamptz, p_to timestamptz, p_zone text,
                                                 p_as_of timestamptz default null)
returns table (day date, currency text, type text, status text, service_count bigint, service_sum bigint,
               mirror_count bigint, mirror_sum bigint, difference_count bigint, difference_sum bigint,
               coverage_percent numeric, run bigint, outcome text)
language sql stable parallel safe as $$
  with days as materialized (
    select d.day, tstzrange(reports.day_start(d.day, p_zone), reports.day_start(d.day + 1, p_zone)) as bounds
    from (select generate_series((p_from at time zone p_zone)::date,
            ((p_to - interval '1 microsecond') at time zone p_zone)::date, interval '1 day')::date as day) d
  ), slices as materialized (
    select s.run, s.slice, s.read_at, s.bounds,
           exists (select from reconcile.daily_sums m where m.run = s.run) as is_summed
    from reports.read_slices(p_as_of) s
    where s.resource = 'transaction' and s.bounds && tstzrange(p_from, p_to)
  ), read as materialized (
    select d.day, d.bounds, newest.run, newest.slice, newest.read_at,
           round(100 * coalesce(parts.seconds, 0) / extract(epoch from upper(d.bounds) - lower(d.bounds)), 2) as percent
    from days d
    left join lateral (
      select s.run, s.slice, s.read_at from slices s where s.is_summed and s.bounds @> d.bounds
      order by s.read_at desc, s.run desc, s.slice limit 1
    ) newest on true
    left join lateral (
      select sum(extract(epoch from upper(r) - lower(r))) as seconds
      from (select range_agg(s.bounds) as got from slices s where s.bounds && d.bounds) g,
           unnest(g.got * tstzmultirange(d.bounds)) r
    ) parts on true
  ), here as (
    -- The join with `read` drops days outside the period. Plain bounds let the planner estimate the number of rows.
    select s.* from reports.day_sums(p_from - interval '26 hours', p_to + interval '26 hours', p_zone, p_as_of) s
  ), changed as (select h.day, max(h.changed_at) as at from here h group by h.day
  ), there as (
    select m.day, reports.one_spelling(m.currency) as currency, m.type, m.status, sum(m.n)::bigint as n,
           sum(m.sum_minor) as total
    from read r join reconcile.daily_sums m on m.run = r.run and m.slice = r.slice and m.day = r.day
    group by m.day, reports.one_spelling(m.currency), m.type, m.status
  )
  select coalesce(h.day, s.day), coalesce(h.currency, s.currency), coalesce(h.type, s.type),
         coalesce(h.status, s.status), f.service_count, f.service_sum, f.mirror_count, f.mirror_sum,
         f.service_count - f.mirror_count, f.service_sum - f.mirror_sum, r.percent, r.run,
         case when r.run is null then 'not read'
              else reports.sums_outcome(f.service_count, f.service_sum, f.mirror_count, f.mirror_sum, c.at, r.read_at) end
  from here h
  full join there s on s.day = h.day and s.currency = h.currency and s.type = h.type and s.status = h.status
  join read r on r.day = coalesce(h.day, s.day)
  left join changed c on c.day = r.day
  cross join lateral (
    select case when r.run is not null then coalesce(s.n, 0) end as service_count,
           case when r.run is not null then (coalesce(s.total, 0) * g.sign)::bigint end as service_sum,
           coalesce(h.n, 0) as mirror_count, (coalesce(h.total, 0) * g.sign)::bigint as mirror_sum
    from (select case when coalesce(s.total, h.total) < 0 then -1 else 1 end as sign) g
  ) f
$$;

create or replace function reports.daily_control_unknown(p_from timestamptz, p_to timestamptz, p_zone text,
                                                        p_as_of timestamptz default null)
returns table (what text, n bigint)
language sql stable parallel safe as $$
  -- Left out on both sides (reports.day_sums).
  select 'transaction.' || case when t.created_at is null then 'created_at' when t.type is null then 'type'
                                when t.status is null then 'status' when t.amount is null then 'amount'
                                else 'currency' end, count(*)
  from reports.transactions(p_as_of) t
  where (t.created_at is null or t.created_at >= p_from and t.created_at < p_to)
    and (t.created_at is null or t.type is null or t.status is null or t.amount is null or t.currency is null)
  group by 1
$$;
