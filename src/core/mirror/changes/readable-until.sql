-- The number up to which rows that are numbered by a sequence are complete: all up to it are committed or never will
-- be. Rows commit in another order than they are numbered, so a reader that relies on visible rows would miss those
-- that commit late. Before a writer takes its numbers, it locks the number that was the last one then, under the class
-- of its table (platform/postgres/numbered-rows.ts), until it has committed. So every row still to come has a number
-- above the lowest locked one. Read it in a statement of its own, at READ COMMITTED, before the rows are read, and read
-- them on the primary.
create or replace function feed.complete_until(p_sequence regclass, p_class integer)
returns bigint language plpgsql volatile as $$
declare
  last_given bigint;
  lowest_locked bigint;
begin
  if pg_is_in_recovery() then
    raise exception 'how far % is complete cannot be known on a standby, which does not show the locks of writers', p_sequence
      using errcode = '55000', hint = 'Ask the primary.';
  end if;
  -- Before the locks are read: a writer that takes a number after this one locked after it, or is found below.
  execute format('select case when is_called then last_value else 0 end from %s', p_sequence) into last_given;
  select min(((l.classid::bigint << 32) | l.objid::bigint) & 281474976710655) into lowest_locked
  from pg_locks l
  where l.locktype = 'advisory' and l.objsubid = 1 and l.classid::bigint >> 16 = p_class
    and l.database = (select d.oid from pg_database d where d.datname = current_database());
  -- Numbers begin at 1. The first writer of all locks 0.
  return greatest(least(last_given, lowest_locked - 1), 0);
end
$$;
comment on function feed.complete_until(regclass, integer) is
  'Up to which number of this sequence all rows are committed, or never will be.';

create or replace function feed.readable_until() returns bigint language plpgsql volatile as $$
begin
  return feed.complete_until('feed.change_numbers', 7255);
end
$$;
comment on function feed.readable_until() is
  'Read feed.changes up to this number, in the order of seq, in a later statement: no change up to it is missing.';
