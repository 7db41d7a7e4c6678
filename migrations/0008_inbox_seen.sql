-- online
-- What 0010 needs before it can turn the inbox into partitions within moments: the memory against repeats, filled from
-- the events that are there, and a proven upper bound of their numbers. Nobody waits for any of this.

-- The time is the event's own, so equal bytes are always looked for in one partition, and the keys of a busy hour are
-- neighbours in the index.
create table if not exists inbox.seen (
  created_at timestamptz not null,
  body uuid not null,
  seq bigint not null,
  repeats integer not null default 0,
  primary key (created_at, body)
) partition by range (created_at);
comment on table inbox.seen is 'Which bytes arrived: by it a repeat is recognised, also when its event was removed.';
comment on column inbox.seen.created_at is 'the event''s own time; -infinity where it has none';
comment on column inbox.seen.body is 'the first half of the SHA-256 of the bytes';
comment on column inbox.seen.repeats is 'how often the same bytes came again';

create table if not exists inbox.seen_default partition of inbox.seen default;

-- Weeks begin on Monday, UTC. The worker makes those that follow.
do $$
declare
  this_week date := date_trunc('week', now() at time zone 'UTC')::date;
  first_week date := greatest(this_week - 15 * 7, (
    select date_trunc('week', min(event_created_at) at time zone 'UTC')::date from inbox.receipts));
  week date;
begin
  for week in select (first_week + n * 7)::date from generate_series(0, (this_week - first_week) / 7 + 4) n loop
    execute format('create table if not exists inbox.%I partition of inbox.seen for values from (%L) to (%L)',
                   'seen_' || to_char(week, 'YYYY_MM_DD'), week || ' 00:00:00Z', (week + 7) || ' 00:00:00Z');
  end loop;
end $$;

insert into inbox.seen (created_at, body, seq, repeats)
select coalesce(r.event_created_at, '-infinity'), encode(substr(r.raw_sha256, 1, 16), 'hex')::uuid, r.seq,
       coalesce(x.times, 0)
from inbox.receipts r left join inbox.repeats x using (seq)
on conflict do nothing;

-- Validated here, the bound spares 0010 a scan of the tables while everybody waits. It is far above the numbers that may
-- still be given out until then.
do $$
declare
  bound bigint := (select coalesce(max(seq), 0) from inbox.receipts) + 100000000;
  part text;
begin
  foreach part in array array['receipts', 'progress'] loop
    if not exists (select from pg_constraint where conname = part || '_before_partitions') then
      execute format('alter table inbox.%I add constraint %I check (seq < %s) not valid', part,
                     part || '_before_partitions', bound);
    end if;
  end loop;
end $$;
alter table inbox.receipts validate constraint receipts_before_partitions;
alter table inbox.progress validate constraint progress_before_partitions;
