-- The durable record of what arrived, and of the work on it. The bytes never change and the state of the work does, so
-- that they are two tables: to change a state column beside 1.5 KB of bytes rewrites the bytes.
create schema inbox;

create table inbox.receipts (
  seq bigint generated always as identity primary key,
  event_id text collate "C" not null,
  raw_sha256 bytea not null,
  type text,
  api_version text,
  event_created_at timestamptz,
  received_at timestamptz not null default now(),
  raw bytea,
  secret_id text not null,
  unique (event_id, raw_sha256)
);
-- Compressing a body costs more than storing it.
alter table inbox.receipts alter column raw set storage external;
comment on table inbox.receipts is 'What arrived and verified, byte for byte; raw is null after a prune.';

-- Written by the same statement as the receipt, so no foreign key is needed to keep them together.
create table inbox.progress (
  seq bigint primary key,
  state text not null default 'received'
    check (state in ('received', 'applied', 'stale', 'ignored', 'failed', 'dead')),
  attempts integer not null default 0,
  next_attempt_at timestamptz,
  reason text,
  resource_type text,
  resource_id text collate "C",
  settled_at timestamptz,
  -- Apart from next_attempt_at: a worker that finds an event in a late or a second job can tell whether it is due.
  relayed_at timestamptz,
  -- What a report knows of an event as of a time is what a worker had told of it by then.
  object_known_at timestamptz
) with (autovacuum_vacuum_scale_factor = 0.05);
create index progress_received on inbox.progress (seq) where state = 'received';
create index progress_failed on inbox.progress (next_attempt_at) where state = 'failed';
create index progress_dead on inbox.progress (seq) where state = 'dead';
create index progress_resource on inbox.progress (resource_id, resource_type) where resource_id is not null;
comment on column inbox.progress.next_attempt_at is 'failed: not tried again before this time';
comment on column inbox.progress.relayed_at is
  'unapplied: when the relay last put it into the queue; left alone for a while from then on';
comment on column inbox.progress.object_known_at is
  'when a worker first told which object the event is about; a replay does not change it';

-- Apart from progress: a receiver that counts must not wait for a worker, nor hide a row from one.
create table inbox.repeats (
  seq bigint primary key,
  times integer not null
);
comment on table inbox.repeats is 'How often what is stored came again.';

create table inbox.fetches (
  resource text not null,
  id text collate "C" not null,
  reason text not null,
  requested_at timestamptz not null default now(),
  due_at timestamptz not null default now(),
  not_before timestamptz,
  generation integer not null default 1,
  attempts integer not null default 0,
  missing_since timestamptz,
  last_error text,
  primary key (resource, id)
);
create index fetches_due on inbox.fetches (due_at);
comment on column inbox.fetches.not_before is
  'service time: an answer dated earlier does not settle the fetch';
