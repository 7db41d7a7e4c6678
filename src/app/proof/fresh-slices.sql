-- The slices that still count at p_at (else at p_as_of, else now): they were read within the rotation plus one day.
create or replace function reports.fresh_slices(p_as_of timestamptz default null, p_at timestamptz default null)
returns table (run bigint, slice integer, resource text, read_at timestamptz, bounds tstzrange, walked tstzrange,
               fresh_until timestamptz)
language sql stable parallel safe as $$
  select s.run, s.slice, s.resource, s.read_at, s.bounds, s.walked, s.fresh_until
  from reports.read_slices(p_as_of) s where s.fresh_until > coalesce(p_at, p_as_of, now())
$$;
