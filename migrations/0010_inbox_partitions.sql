-- The inbox in partitions by number. Events leave it by dropping a table, without a vacuum, and the indexes with random
-- keys stay as small as a week. What is there becomes the first partition as it is: no row is copied or read.
--
-- Receivers of an older version answer 503 from here on, and the service sends again: their INSERT names a unique key
-- that a partitioned table cannot have.

-- A view would keep to the old table, which is but the first partition now.
do $$
declare
  views text := (
    select string_agg(distinct v.oid::regclass::text, ', ')
    from pg_depend d join pg_rewrite w on w.oid = d.objid join pg_class v on v.oid = w.ev_class
    where d.refobjid in ('inbox.receipts'::regclass, 'inbox.progress'::regclass, 'inbox.repeats'::regclass)
      and d.classid = 'pg_rewrite'::regclass and v.oid is distinct from to_regclass('inbox.events'));
begin
  if views is not null then
    raise exception 'These views read tables of the inbox that are replaced now: %.', views
      using hint = 'Drop them, migrate, and create them again.';
  end if;
end $$;
lock table inbox.receipts, inbox.progress, inbox.repeats in access exclusive mode;

-- What came since 0008. A number may be committed after a higher one.
insert into inbox.seen (created_at, body, seq, repeats)
select coalesce(r.event_created_at, '-infinity'), encode(substr(r.raw_sha256, 1, 16), 'hex')::uuid, r.seq, 0
from inbox.receipts r
where r.seq > (select coalesce(max(seq), 0) - 100000 from inbox.seen)
on conflict do nothing;
update inbox.seen s set repeats = x.times
from inbox.repeats x join inbox.receipts r using (seq)
where s.created_at = coalesce(r.event_created_at, '-infinity')
  and s.body = encode(substr(r.raw_sha256, 1, 16), 'hex')::uuid and s.repeats <> x.times;

alter table inbox.receipts rename to receipts_0;
alter table inbox.receipts_0 alter column seq drop identity;
alter index inbox.receipts_pkey rename to receipts_0_pkey;
alter index inbox.receipts_event_id_raw_sha256_key rename to receipts_0_event_id;
alter table inbox.progress rename to progress_0;
alter table inbox.progress_0 drop column relayed_at;
alter index inbox.progress_pkey rename to progress_0_pkey;
alter index inbox.progress_received rename to progress_0_received;
alter index inbox.progress_failed rename to progress_0_failed;
alter index inbox.progress_dead rename to progress_0_dead;
alter index inbox.progress_resource rename to progress_0_resource;

create sequence inbox.event_numbers as bigint;
comment on sequence inbox.event_numbers is
  'Numbers of events. Some are never used: those of repeats, and the rest of a partition when the next one begins.';

create table inbox.receipts (like inbox.receipts_0 including storage including comments, primary key (seq))
  partition by range (seq);
alter table inbox.receipts alter column seq set default nextval('inbox.event_numbers');
alter table inbox.receipts alter column received_at set default now();
comment on table inbox.receipts is 'What arrived and verified, byte for byte; raw is null after a prune.';

create table inbox.progress (
  like inbox.progress_0 including defaults including comments,
  primary key (seq),
  constraint progress_state_check check (state in ('received', 'applied', 'stale', 'ignored', 'failed', 'dead'))
) partition by range (seq);
create index progress_received on inbox.progress (seq) where state = 'received';
create index progress_failed on inbox.progress (next_attempt_at) where state = 'failed';
create index progress_dead on inbox.progress (seq) where state = 'dead';
create index progress_resource on inbox.progress (resource_id, resource_type) where resource_id is not null;

-- Nothing is lost while the partition of a number is missing: it lands here, and doctor says so.
create table inbox.receipts_default partition of inbox.receipts default;
create index receipts_default_event_id on inbox.receipts_default (event_id);
create table inbox.progress_default partition of inbox.progress default;

-- As inbox/events.sql has it, which is not applied yet: the former one reads inbox.repeats.
create or replace view inbox.events as
  select r.seq, r.event_id, r.raw_sha256, r.type, r.api_version, r.event_created_at, r.received_at,
         r.raw, r.secret_id, p.state, p.attempts, p.next_attempt_at, p.reason, p.resource_type,
         p.resource_id, 1 + coalesce(s.repeats, 0) as deliveries, p.settled_at
  from inbox.receipts r join inbox.progress p using (seq)
  left join inbox.seen s on s.created_at = coalesce(r.event_created_at, '-infinity')
    and s.body = encode(substr(r.raw_sha256, 1, 16), 'hex')::uuid;
drop table inbox.repeats;

do $$
declare
  is_empty boolean := not exists (select from inbox.receipts_0);
  -- Above every number given out so far, as 0008 has proven it.
  first_new bigint := case when is_empty then 1 else (
    select substring(pg_get_constraintdef(oid) from '\d+')::bigint from pg_constraint
    where conname = 'receipts_before_partitions' and conrelid = 'inbox.receipts_0'::regclass) end;
  part text;
  span bigint;
  granted record;
begin
  perform setval('inbox.event_numbers', first_new, false);
  foreach part in array array['receipts', 'progress'] loop
    for granted in
      select acl.grantee::regrole as grantee, acl.privilege_type
      from pg_class c, aclexplode(c.relacl) acl
      where c.oid = format('inbox.%I', part || '_0')::regclass and acl.grantee not in (0, c.relowner)
    loop
      execute format('grant %s on inbox.%I to %s', granted.privilege_type, part, granted.grantee);
    end loop;
    for granted in
      select acl.grantee::regrole as grantee, acl.privilege_type, a.attname
      from pg_attribute a, aclexplode(a.attacl) acl
      where a.attrelid = format('inbox.%I', part || '_0')::regclass and acl.grantee <> 0
    loop
      execute format('grant %s (%I) on inbox.%I to %s', granted.privilege_type, granted.attname, part, granted.grantee);
    end loop;
    if is_empty then
      execute format('drop table inbox.%I', part || '_0');
    else
      execute format('alter table inbox.%I attach partition inbox.%I for values from (minvalue) to (%s)', part,
                     part || '_0', first_new);
      execute format('alter table inbox.%I drop constraint %I', part || '_0', part || '_before_partitions');
    end if;
    -- The first one and those that follow it: until a worker makes more of them.
    for span in select first_new + n * 10000000 from generate_series(0, 2) n loop
      execute format('create table inbox.%I partition of inbox.%I for values from (%s) to (%s)', part || '_' || span,
                     part, span, span + 10000000);
      if part = 'receipts' then
        execute format('create index %I on inbox.%I (event_id)', 'receipts_' || span || '_event_id', 'receipts_' || span);
      else
        execute format('alter table inbox.%I set (autovacuum_vacuum_scale_factor = 0.05)', 'progress_' || span);
      end if;
    end loop;
  end loop;
end $$;

create table inbox.dropped (
  only_one boolean primary key default true check (only_one),
  first_event_at timestamptz not null,
  until timestamptz not null
);
comment on table inbox.dropped is 'What is still asked of events whose partitions were dropped.';
comment on column inbox.dropped.first_event_at is 'service time of the first event that ever arrived';
comment on column inbox.dropped.until is 'when the last of them had arrived: events up to then may be missing';
