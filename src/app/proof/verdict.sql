-- INCOMPLETE unless fresh slices (reports.fresh_slices) of each resource cover all that was created before p_to, and
-- changes to older objects were read up to p_to (reports.changes_read_until). Else FAIL if a serious finding is open
-- (reports.open_findings: critical or high, and enforced), else PASS. A report's own rows can also fail it (`failsOn`
-- in report.ts). A balance needs all that came before it, so coverage and findings reach back to the first record.
-- Findings about a later time affect no figure of the period and do not count.
--
-- coverage_percent is that of the resource with the least: `got`, the time that fresh slices cover, of `wanted`, the
-- time from `start` to p_to. A slice without a lower bound has no length, so `start` is p_from, or the earliest bound
-- of any slice if that is before. read_until is the time up to which every resource is covered without a gap and the
-- changes are read.
create or replace function reports.verdict(p_from timestamptz, p_to timestamptz, p_as_of timestamptz default null)
returns table (verdict text, coverage_percent numeric, read_until timestamptz, last_run bigint, open_findings bigint,
               open_warnings bigint)
language sql stable as $$
  with fresh as (
    select s.resource, s.bounds from reports.fresh_slices(p_as_of) s
  ), start as (
    select least(p_from, min(lower(f.bounds)), min(upper(f.bounds))) as at from fresh f
  ), per_resource as (
    select k.resource, tstzmultirange(tstzrange(s.at, greatest(s.at, p_to))) as wanted,
           coalesce((select range_agg(f.bounds) from fresh f where f.resource = k.resource), '{}') as got
    from start s cross join mirror.resources() k
  ), seconds as (
    select p.resource, tstzrange(null, p_to) <@ p.got as is_whole,
           (select sum(extract(epoch from upper(r) - lower(r))) from unnest(p.wanted) r) as wanted,
           (select sum(extract(epoch from upper(r) - lower(r))) from unnest(p.wanted * p.got) r) as got,
           (select coalesce(upper(r), p_to) from unnest(p.got) r where lower_inf(r)) as until
    from per_resource p
  ), coverage as (
    select bool_and(s.is_whole) as is_whole,
           min(trunc(100 * coalesce(s.got, 0) / nullif(s.wanted, 0), 2)) as percent,
           case when bool_and(s.until is not null) then min(least(s.until, p_to)) end as until
    from seconds s
  ), found as (
    select count(*) filter (where f.is_serious) as serious, count(*) filter (where not f.is_serious) as warnings
    from reports.open_findings(p_to, p_as_of) f
  )
  select case when c.is_whole is not true or changes.at is null or changes.at < p_to then 'INCOMPLETE'
              when f.serious > 0 then 'FAIL' else 'PASS' end,
         coalesce(c.percent, 0.00), case when c.until is not null then least(c.until, changes.at) end,
         (select max(r.run) from reconcile.run_states r where r.state <> 'running' and r.recorded_at <= coalesce(p_as_of, 'infinity')),
         f.serious, f.warnings
  from coverage c cross join found f cross join reports.changes_read_until(p_as_of) as changes(at)
$$;
