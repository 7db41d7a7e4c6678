create or replace function reconcile.is_routine_read(p_why text) returns boolean
language sql immutable parallel safe as $$
  select p_why in ('open_item', 'out_of_time')
$$;
comment on function reconcile.is_routine_read is
  'Whether a recheck reads, night by night, what no list shows: an open item, or a row that no slice reaches. Nothing differed.';
