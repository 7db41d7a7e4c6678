-- What people are told. An alert is a key and its occurrence; history has one row for each change of its life, and
-- outbox what is to be sent of it, written with the change it tells of.
create schema alerts;

create table alerts.alerts (
  id bigint generated always as identity primary key,
  key text collate "C" not null,
  occurrence integer not null default 1,
  rule text collate "C" not null,
  severity text not null check (severity in ('critical', 'error', 'warning', 'info')),
  state text not null default 'open' check (state in ('open', 'acknowledged', 'resolved')),
  -- The last stage of its story.
  stage text not null,
  order_id text collate "C",
  subscription_id text collate "C",
  transaction_id text collate "C",
  customer_id text collate "C",
  amount_minor bigint,
  currency text,
  -- Of the story: the service's clock for what happened there, the wall clock for what happened here.
  opened_at timestamptz not null,
  updated_at timestamptz not null,
  resolved_at timestamptz,
  escalated_at timestamptz,
  escalations integer not null default 0,
  acknowledged_at timestamptz,
  acknowledged_by text,
  acknowledged_note text,
  -- Ids, codes, counts and times: nothing that tells who somebody is.
  facts jsonb not null default '{}',
  found_by text not null check (found_by in ('event', 'read', 'reconciliation', 'import', 'sweep')),
  -- This database's clock.
  created_at timestamptz not null default now(),
  unique (key, occurrence)
);
create index alerts_unresolved on alerts.alerts (rule, created_at) where state <> 'resolved';
create index alerts_unescalated on alerts.alerts (created_at) where state = 'open';
create index alerts_created on alerts.alerts (created_at);
create index alerts_order on alerts.alerts (order_id) where order_id is not null;
create index alerts_subscription on alerts.alerts (subscription_id) where subscription_id is not null;
create index alerts_transaction on alerts.alerts (transaction_id) where transaction_id is not null;
create index alerts_customer on alerts.alerts (customer_id) where customer_id is not null;

create table alerts.history (
  id bigint generated always as identity primary key,
  alert_id bigint not null references alerts.alerts (id),
  change text not null check (change in ('opened', 'updated', 'escalated', 'acknowledged', 'resolved')),
  stage text not null,
  at timestamptz not null,
  found_by text not null,
  detail jsonb not null default '{}',
  recorded_at timestamptz not null default now(),
  unique (alert_id, stage)
);
create index history_recorded on alerts.history (recorded_at);
-- Declines are counted by the time of the charge.
create index history_at on alerts.history (at);
comment on table alerts.history is 'One row a change of an alert''s life; its story in the order of "at".';

create table alerts.outbox (
  id bigint generated always as identity primary key,
  channel text not null,
  -- Null for a digest.
  alert_id bigint references alerts.alerts (id),
  stage text not null,
  action text not null check (action in ('trigger', 'acknowledge', 'resolve')),
  message jsonb not null,
  -- The database's clock, as are all times of the outbox.
  due_at timestamptz not null default now(),
  state text not null default 'pending' check (state in ('pending', 'sent', 'dropped', 'failed')),
  attempts integer not null default 0,
  -- When it is tried again; while it is being sent: when it comes back, should its sender die.
  next_attempt_at timestamptz,
  -- An attempt began, and its outcome is not known.
  maybe_sent boolean not null default false,
  sent_at timestamptz,
  last_error text,
  created_at timestamptz not null default now(),
  is_list boolean not null default false,
  unique nulls not distinct (channel, alert_id, stage)
);
create index outbox_pending on alerts.outbox (channel, due_at) where state = 'pending';
create index outbox_alert on alerts.outbox (alert_id);
comment on column alerts.outbox.is_list is
  'Lists other alerts than the one it belongs to: still worth telling when that one is over.';

-- What waits for a channel's next digest. Holds ids only: the digest is written from the alert as it is then. An item
-- stays when its digest was written: whoever was asked there to collect an amount hears, too, when it is paid after
-- all.
create table alerts.digest_items (
  channel text not null,
  alert_id bigint not null references alerts.alerts (id),
  stage text not null,
  queued_at timestamptz not null default now(),
  told_at timestamptz,
  primary key (channel, alert_id, stage)
);
create index digest_items_alert on alerts.digest_items (alert_id);
create index digest_items_waiting on alerts.digest_items (channel) where told_at is null;
comment on column alerts.digest_items.told_at is 'When its digest was written; null: it waits for the next one.';

-- None of them is only written down. What to do about one is in its alert's facts.
create table alerts.storm_items (
  channel text not null,
  alert_id bigint not null references alerts.alerts (id),
  stage text not null,
  -- The incident that stands for the crowd.
  storm_id bigint not null references alerts.alerts (id),
  -- alone: by itself, at once. at_once: in the next list. at_end: in the list when the storm is over, or an hour later.
  -- over: it waited for a list and was resolved meanwhile.
  told_how text not null check (told_how in ('alone', 'at_once', 'at_end', 'over')),
  queued_at timestamptz not null default now(),
  -- Null: it waits for its list, or was over before.
  told_at timestamptz,
  primary key (channel, alert_id, stage)
);
create index storm_items_waiting on alerts.storm_items (storm_id) where told_at is null;
create index storm_items_alert on alerts.storm_items (alert_id);
create index storm_items_storm on alerts.storm_items (storm_id, told_how, queued_at);
comment on table alerts.storm_items is 'What is told of the alerts of a storm, and how.';

create table alerts.seen_values (
  kind text collate "C" not null,
  value text collate "C" not null,
  first_seen_at timestamptz not null default now(),
  primary key (kind, value)
);
comment on table alerts.seen_values is 'Types, versions, statuses, codes and currencies that are new no more.';

-- What one sweep leaves for the next, by name: how far the inbox was looked through, the usual rate of declines.
create table alerts.marks (
  name text primary key,
  value jsonb not null,
  updated_at timestamptz not null default now()
);

create table alerts.event_hours (
  hour timestamptz primary key,
  events bigint not null
);
comment on table alerts.event_hours is 'How many events an hour brought, by the service''s clock.';

create table alerts.heartbeats (
  name text primary key,
  beat_at timestamptz not null default now()
);
comment on table alerts.heartbeats is 'Workers, and the scheduler; a worker that ends well takes its row with it.';
