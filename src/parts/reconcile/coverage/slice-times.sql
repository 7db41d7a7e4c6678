-- Sets from when to when a slice counts as read to its end, so that a report as of a time always gives the same answer.
-- A slice that is inserted complete, as the copy of an older database is, counts since the end of its run.
create or replace function reconcile.keep_slice_times() returns trigger language plpgsql as $$
begin
    if new.state = 'complete' then
      new.completed_at := coalesce(
        (select r.finished_at from reconcile.runs r where tg_op = 'INSERT' and r.id = new.run), clock_timestamp());
      new.revoked_at := null;
    elsif tg_op = 'UPDATE' then
      new.revoked_at := clock_timestamp();
    end if;
    return new;
end
$$;

create or replace trigger coverage_opened before insert on reconcile.coverage
  for each row when (new.state = 'complete') execute function reconcile.keep_slice_times();

create or replace trigger coverage_changed before update on reconcile.coverage
  for each row when (old.state <> new.state and 'complete' in (old.state, new.state))
  execute function reconcile.keep_slice_times();
