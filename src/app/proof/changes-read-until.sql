-- The service's time up to which changes to older objects were read: the latest T0 of a run that ended, that read
-- everything or every list by status to its end, and that read by id the open items which no list showed. A run over a
-- requested range does not count: it proves nothing about older objects.
create or replace function reports.changes_read_until(p_as_of timestamptz default null) returns timestamptz
language sql stable parallel safe as $$
  select max(r.t0)
  from reconcile.runs r
  cross join lateral (
    select s.has_ended from reconcile.run_states s
    where s.run = r.id and s.recorded_at <= coalesce(p_as_of, 'infinity') order by s.recorded_at desc, s.id desc limit 1
  ) last
  where last.has_ended and r.kind <> 'range'
    and exists (select from reconcile.coverage c where c.run = r.id and c.step in ('status', 'all'))
    and not exists (
      select from reconcile.coverage c
      where c.run = r.id and c.step in ('status', 'all')
        and (c.completed_at <= coalesce(p_as_of, 'infinity')
             and (c.revoked_at is null or c.revoked_at > coalesce(p_as_of, 'infinity'))) is not true)
    -- A run does not count while one of its rechecks is open. It never counts if it ended before all open items were
    -- read: a later run looks for its own and does not adopt those.
    and not exists (
      select from reconcile.doubts d
      where d.run = r.id and d.recorded_at <= coalesce(p_as_of, 'infinity')
        and (d.settled_at is null or d.settled_at > coalesce(p_as_of, 'infinity')
             or reconcile.is_routine_read(d.why) and d.outcome like 'left to run %'))
$$;
