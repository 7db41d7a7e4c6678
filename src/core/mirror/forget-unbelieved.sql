-- Removes states that were dated in the future 90 days ago, at most p_limit, and returns their number: states that wait
-- for a read (mirror.misdated) stay, and so do states that a person overruled, since an event that brings one again
-- must change nothing. No report reads the rest, and a replayed event brings them again. The age is fixed here, so that
-- no caller can remove younger ones.
create or replace function mirror.forget_unbelieved(p_limit integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  forgotten integer;
begin
  if not has_table_privilege(session_user, 'mirror.misdated', 'delete') then
    raise exception 'the role % may not forget states that were dated in the future', session_user
      using errcode = 'insufficient_privilege', hint = 'The worker does (node src/bin/tallyhook.js roles --sql).';
  end if;
  delete from mirror.unbelieved where (resource, id, source_updated_at, content_hash) in (
    select u.resource, u.id, u.source_updated_at, u.content_hash from mirror.unbelieved u
    where u.recorded_at < now() - interval '90 days' and u.heal is null and not exists (
      select from mirror.misdated m where m.id = u.id and m.resource = split_part(u.resource, '.', 1))
    limit p_limit);
  get diagnostics forgotten = row_count;
  return forgotten;
end
$$;
