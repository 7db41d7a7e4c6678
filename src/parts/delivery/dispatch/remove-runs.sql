-- Removes runs of a handler, done or skipped, and lets the next run of each of their objects have its turn. Returns the
-- numbers of those that it removed. p_tokens: of the claims under which they were done; null: no process may be running
-- them. A planner of runs holds this lock exclusively, so that no run is planned behind one that is being removed,
-- where it would wait endlessly. Skipping holds it exclusively, too: a run that waits behind another one must not be
-- removed while that one is being removed and promotes it.
create or replace function dispatch.remove_runs(p_handler text, p_seqs bigint[], p_tokens integer[])
returns bigint[] language plpgsql volatile as $$
declare
  removed bigint[];
begin
  if p_tokens is null then
    perform pg_advisory_xact_lock(7256, hashtext(p_handler));
  else
    perform pg_advisory_xact_lock_shared(7256, hashtext(p_handler));
  end if;
  -- A statement of its own, which sees the runs planned before the lock was taken.
  with gone as (
    delete from dispatch.runs r using unnest(p_seqs, p_tokens) as given(seq, token)
    where r.handler = p_handler and r.seq = given.seq
      and case when given.token is null then coalesce(r.claimed_until <= now(), true)
               else r.token = given.token and r.state = 'waiting' end
    returning r.seq, r.resource, r.id, r.is_first
  ), promoted as (
    update dispatch.runs r set is_first = true
    from gone cross join lateral (
      select n.seq from dispatch.runs n
      where n.handler = p_handler and n.resource = gone.resource and n.id = gone.id and n.seq > gone.seq
        and not n.seq = any(p_seqs)
      order by n.seq limit 1
    ) as next
    where gone.is_first and r.handler = p_handler and r.seq = next.seq
  )
  select coalesce(array_agg(seq), '{}') into removed from gone;
  return removed;
end
$$;
comment on function dispatch.remove_runs(text, bigint[], integer[]) is
  'Removes runs that are done or skipped, and lets the next run of each of their objects have its turn.';
