-- Only the owner of a table may make and drop its partitions. These functions lend that right, for the partitions of
-- the inbox only, to roles that may delete its events. session_user is the role that logged in: inside a function with
-- the owner's rights, current_user is the owner. A restore brings no grants back, so the check stands here.
create or replace function inbox.require_keeper() returns void language plpgsql stable as $$
begin
  if not has_table_privilege(session_user, 'inbox.receipts', 'delete') then
    raise exception 'the role % may not change the partitions of the inbox', session_user
      using errcode = 'insufficient_privilege', hint = 'The worker keeps them (node src/bin/tallyhook.js roles --sql).';
  end if;
end
$$;

-- Attached and not created in place: that would lock out all readers and writers of the other partitions.
create or replace function inbox.make_partitions(p_from bigint, p_to bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  receipts text := 'receipts_' || p_from;
  progress text := 'progress_' || p_from;
begin
  perform inbox.require_keeper();
  -- Numbers ahead are in the default partition only if they were set manually: no partition may be attached over them.
  lock table inbox.receipts_default, inbox.progress_default in access exclusive mode;
  execute format('create table inbox.%I (like inbox.receipts including defaults including storage)', receipts);
  execute format('with early as (delete from inbox.receipts_default where seq >= %s and seq < %s returning *)
                  insert into inbox.%I select * from early', p_from, p_to, receipts);
  execute format('alter table inbox.receipts attach partition inbox.%I for values from (%s) to (%s)',
                 receipts, p_from, p_to);
  -- The table itself has no such index: one that is not unique helps to find an event by its id.
  execute format('create index %I on inbox.%I (event_id)', receipts || '_event_id', receipts);
  execute format('create table inbox.%I (like inbox.progress including defaults including constraints)
                  with (autovacuum_vacuum_scale_factor = 0.05)', progress);
  execute format('with early as (delete from inbox.progress_default where seq >= %s and seq < %s returning *)
                  insert into inbox.%I select * from early', p_from, p_to, progress);
  execute format('alter table inbox.progress attach partition inbox.%I for values from (%s) to (%s)',
                 progress, p_from, p_to);
end
$$;

-- Waits for transactions that are about to replay or store an event of it, and keeps later ones out.
create or replace function inbox.hold_partition(p_from bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform inbox.require_keeper();
  execute format('lock table inbox.%I in share mode', 'progress_' || p_from);
end
$$;

create or replace function inbox.drop_partitions(p_from bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform inbox.require_keeper();
  execute format('drop table inbox.%I, inbox.%I', 'receipts_' || p_from, 'progress_' || p_from);
end
$$;

-- A week of the memory against repeats, from that Monday, 00:00 UTC. Takes over its existing rows: a service's clock
-- may run ahead.
create or replace function inbox.make_week(p_monday date) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  week text := 'seen_' || to_char(p_monday, 'YYYY_MM_DD');
  begins timestamptz := p_monday::timestamp at time zone 'UTC';
  ends timestamptz := (p_monday + 7)::timestamp at time zone 'UTC';
begin
  perform inbox.require_keeper();
  lock table inbox.seen_default in access exclusive mode;
  execute format('create table inbox.%I (like inbox.seen including defaults including constraints)', week);
  execute format('with early as (
                    delete from inbox.seen_default where created_at >= %L and created_at < %L returning *
                  )
                  insert into inbox.%I select * from early', begins, ends, week);
  execute format('alter table inbox.seen attach partition inbox.%I for values from (%L) to (%L)', week, begins, ends);
end
$$;

create or replace function inbox.drop_week(p_monday date) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform inbox.require_keeper();
  execute format('drop table inbox.%I', 'seen_' || to_char(p_monday, 'YYYY_MM_DD'));
end
$$;
