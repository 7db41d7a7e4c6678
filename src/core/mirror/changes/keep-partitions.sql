-- For the feed what inbox/keep-partitions.sql is for the inbox: for roles that may delete its changes.
create or replace function feed.require_keeper() returns void language plpgsql stable as $$
begin
  if not has_table_privilege(session_user, 'feed.changes', 'delete') then
    raise exception 'the role % may not change the partitions of the feed', session_user
      using errcode = 'insufficient_privilege', hint = 'The worker keeps them (node src/bin/tallyhook.js roles --sql).';
  end if;
end
$$;

create or replace function feed.make_partitions(p_from bigint, p_to bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  changes text := 'changes_' || p_from;
begin
  perform feed.require_keeper();
  lock table feed.changes_default in access exclusive mode;
  execute format('create table feed.%I (like feed.changes including defaults including constraints)', changes);
  execute format('with early as (delete from feed.changes_default where seq >= %s and seq < %s returning *)
                  insert into feed.%I select * from early', p_from, p_to, changes);
  execute format('alter table feed.changes attach partition feed.%I for values from (%s) to (%s)', changes, p_from, p_to);
end
$$;

create or replace function feed.drop_partitions(p_from bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform feed.require_keeper();
  execute format('drop table feed.%I', 'changes_' || p_from);
end
$$;
