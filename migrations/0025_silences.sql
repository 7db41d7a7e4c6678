-- Silences: messages of some alerts wait until a time. The alerts themselves stay as they are.
create table alerts.silences (
  id bigint generated always as identity primary key,
  -- Of all alerts of a rule, or of those with one key.
  rule text collate "C",
  key text collate "C",
  -- Messages that are more severe than this are sent all the same.
  up_to_severity text not null check (up_to_severity in ('critical', 'error', 'warning', 'info')),
  -- This database's clock, as are all times of the outbox.
  began_at timestamptz not null default now(),
  ends_at timestamptz not null check (ends_at > began_at),
  began_by text not null,
  reason text,
  -- Ended before its time.
  ended_at timestamptz,
  ended_by text,
  check ((rule is null) <> (key is null) and (ended_at is null) = (ended_by is null))
);
create index silences_in_force on alerts.silences (ends_at) where ended_at is null;
create index silences_key on alerts.silences (key) where key is not null;
create index silences_rule on alerts.silences (rule) where rule is not null;
comment on table alerts.silences is 'Until when messages of a rule or a key wait, who said so, and who ended it early.';

alter table alerts.outbox add column silence_id bigint;
comment on column alerts.outbox.silence_id is 'The silence that last made it wait, until due_at.';
