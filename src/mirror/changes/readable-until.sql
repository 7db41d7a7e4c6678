-- The number up to which the feed is complete: all changes up to it are committed or never will be. Rows commit in
-- another order than they are numbered, so a reader that goes by what it sees would miss those that commit late.
-- Before a writer takes its numbers, it locks the number that was the last one then (record-changes.ts), until it has
-- committed. So whatever is still to come has a number above the lowest locked one. Ask for it in a statement of its own,
-- at READ COMMITTED, before the changes are read, and read them on the primary.
create or replace function feed.readable_until() returns bigint language plpgsql volatile as $$
declare
  last_given bigint;
  lowest_locked bigint;
begin
  if pg_is_in_recovery() then
    raise exception 'feed.readable_until() cannot be known on a standby, which does not show the locks of writers'
      using errcode = '55000', hint = 'Ask the primary.';
  end if;
  -- Before the locks are read: who takes a number after this one locked after it, or is found below.
  select case when is_called then last_value else 0 end into last_given from feed.change_numbers;
  select min(((l.classid::bigint << 32) | l.objid::bigint) & 281474976710655) into lowest_locked
  from pg_locks l
  where l.locktype = 'advisory' and l.objsubid = 1 and l.classid::bigint >> 16 = 7255
    and l.database = (select d.oid from pg_database d where d.datname = current_database());
  return least(last_given, lowest_locked - 1);
end
$$;
comment on function feed.readable_until() is
  'Read feed.changes up to this number, in the order of seq, in a later statement: no change up to it is missing.';
