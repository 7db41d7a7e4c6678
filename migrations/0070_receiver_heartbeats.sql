-- Receivers, and when each was last heard of, so that it is told when none takes webhooks.
create table receiver.heartbeats (
  name text primary key,
  started_at timestamptz not null default now(),
  beat_at timestamptz not null default now(),
  ready_at timestamptz,
  answered_at timestamptz,
  stopped_at timestamptz
);
comment on table receiver.heartbeats is
  'Receivers. The newest row stays: where none was ever heard of, none is missed.';
comment on column receiver.heartbeats.ready_at is 'When it was last able to store an event.';
comment on column receiver.heartbeats.answered_at is 'When it last answered a webhook, whatever the answer.';
comment on column receiver.heartbeats.stopped_at is 'When it ended well.';
