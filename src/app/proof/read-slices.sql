-- Slices that were read to their end, by runs that ended and left no recheck open (reconcile.coverage). `walked` is the
-- range that was read; `bounds` is a part of it in which every object is proved, one row for each part. How long a read
-- counts goes by the database's clock: the service's may stand, or be moved.
create or replace function reports.read_slices(p_as_of timestamptz default null)
returns table (run bigint, slice integer, resource text, read_at timestamptz, bounds tstzrange, walked tstzrange,
               fresh_until timestamptz)
language sql stable parallel safe as $$
  with hole as materialized (
    select u.run, u.resource, u.hole from reports.unproved_objects(p_as_of) u
  )
  select c.run, c.slice, c.resource, c.read_at, coalesce(part.bounds, 'empty'),
         tstzrange(c.created_from, c.created_before), c.completed_at + make_interval(days => r.rotation_nights + 1)
  from reconcile.runs r
  cross join lateral (
    select s.has_ended from reconcile.run_states s
    where s.run = r.id and s.recorded_at <= coalesce(p_as_of, 'infinity') order by s.recorded_at desc, s.id desc limit 1
  ) last
  join reconcile.coverage c on c.run = r.id
  left join lateral (
    select unnest(tstzmultirange(tstzrange(c.created_from, c.created_before)) - coalesce((
      select range_agg(h.hole) from hole h where h.resource = c.resource and h.run >= c.run), '{}')) as bounds
  ) part on true
  where last.has_ended and c.is_closed and c.pages > 0 and c.read_at is not null
    and c.completed_at <= coalesce(p_as_of, 'infinity')
    and (c.revoked_at is null or c.revoked_at > coalesce(p_as_of, 'infinity'))
    and not exists (
      select from reconcile.doubts d
      where d.run = r.id and d.settled_at is null and d.recorded_at <= coalesce(p_as_of, 'infinity'))
    and (p_as_of is null or not exists (
      select from reconcile.doubts d where d.run = r.id and d.settled_at > p_as_of and d.recorded_at <= p_as_of))
$$;
