-- Handlers: the merchant's own code, and which change of the feed each of them still has to see.
create schema dispatch;

create table dispatch.handlers (
  name text collate "C" primary key,
  -- All changes of the feed up to it became runs, or were not wanted.
  position bigint not null,
  -- Changes recorded before it are not wanted; null: all are.
  starts_at timestamptz,
  paused_at timestamptz,
  paused_by text check (paused_by in ('person', 'failures')),
  pause_reason text,
  -- Paused by failures: when one run is tried again.
  probe_at timestamptz,
  -- Failures before it count no more: a person has looked.
  resumed_at timestamptz not null default now(),
  created_at timestamptz not null default now(),
  check ((paused_at is null) = (paused_by is null) and (paused_at is null) = (pause_reason is null))
);
comment on table dispatch.handlers is 'The handlers that ever ran, how far each has read the feed, and why one is paused.';

-- Apart from the row above, which who plans locks.
create table dispatch.counts (
  handler text collate "C" primary key,
  done bigint not null default 0,
  failed bigint not null default 0,
  last_done_at timestamptz,
  last_failed_at timestamptz
) with (fillfactor = 50);
comment on table dispatch.counts is 'Runs that were done, and attempts that failed. A run that is done is deleted.';

create table dispatch.runs (
  handler text collate "C" not null,
  seq bigint not null,
  resource text collate "C" not null,
  id text collate "C" not null,
  kind text collate "C" not null,
  -- As the feed had it. The feed may remove its own.
  change jsonb not null,
  -- Of the runs of this handler for this object, the one whose turn it is.
  is_first boolean not null,
  state text not null default 'waiting' check (state in ('waiting', 'dead')),
  attempts integer not null default 0,
  due_at timestamptz not null default now(),
  -- Until then a process runs it; who takes it next has a higher token.
  claimed_until timestamptz,
  token integer not null default 0,
  error text,
  failed_at timestamptz,
  created_at timestamptz not null default now(),
  primary key (handler, seq)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
-- What can be claimed, the oldest first: whatever waits behind another run is not in it.
create index runs_due on dispatch.runs (handler, due_at, seq) where is_first and state = 'waiting';
create index runs_object on dispatch.runs (handler, resource, id, seq);
create index runs_failed on dispatch.runs (handler, failed_at) where failed_at is not null;
create index runs_dead on dispatch.runs (handler, seq) where state = 'dead';
comment on table dispatch.runs is 'Changes that a handler still has to see. A dead run holds up the later ones of its object.';
