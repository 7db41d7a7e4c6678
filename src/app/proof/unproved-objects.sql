-- Objects that are not known to be correct: a recheck is open, the object could not be read, or the run ended before
-- the recheck was concluded (too much was missing at once). Each is a hole, at its creation time, in the proofs of its
-- run and of every earlier run. A later run that lists the object closes the hole. Open items that no list showed, and
-- rows that no list can show, are read by id in every run: they are a hole only if that read fails.
create or replace function reports.unproved_objects(p_as_of timestamptz default null)
returns table (run bigint, resource text, hole tstzrange)
language sql stable parallel safe as $$
  select d.run, d.resource, case when d.object_at is null then tstzrange(null, null)
         else tstzrange(date_trunc('milliseconds', d.object_at),
                        date_trunc('milliseconds', d.object_at) + interval '1 millisecond') end
  from (
    select o.* from reconcile.doubts o where o.settled_at is null
    union all
    select o.* from reconcile.doubts o where o.settled_at > p_as_of
    union all
    select o.* from reconcile.doubts o
    where o.outcome in ('unreadable', 'not concluded') and o.settled_at <= coalesce(p_as_of, 'infinity')
  ) d
  where d.recorded_at <= coalesce(p_as_of, 'infinity')
    and (not reconcile.is_routine_read(d.why)
         or d.outcome = 'unreadable' and d.settled_at <= coalesce(p_as_of, 'infinity'))
$$;
