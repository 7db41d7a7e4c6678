-- What was not known to be right: an object that waits to be read again, that could not be read, or whose run ended
-- before it was (too much was missing at once). It is a hole in
-- what its run and every earlier one proved, where it was created; a later run that lists it closes the hole. An open
-- item that no list of the night can show is read by its id as a matter of course: nothing is suspected of it.
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
    and (d.why not in ('open_item', 'out_of_time') or d.outcome = 'unreadable' and d.settled_at <= coalesce(p_as_of, 'infinity'))
$$;
