-- What reconciliation read, what it doubts, and what it found: the ledger of slices is what "complete" is computed
-- from, and findings are kept for ever. Also this deployment's account and its endpoints at the service.
create schema reconcile;

create table reconcile.runs (
  id bigint generated always as identity primary key,
  run_key text collate "C" not null unique,
  kind text not null check (kind in ('nightly', 'full', 'range', 'import')),
  -- Service time, as are the bounds and every read_at: the service's lists are cut by its own clock.
  t0 timestamptz not null,
  range_from timestamptz,
  range_to timestamptz,
  report_only boolean not null default false,
  first_fill boolean not null default false,
  page_size integer,
  -- The database's clock, as is finished_at.
  started_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz,
  state text not null default 'running'
    check (state in ('running', 'complete', 'incomplete', 'abandoned')),
  totals jsonb not null default '{}',
  error text,
  rotation_nights smallint not null default 30
);
create index runs_kind on reconcile.runs (kind, started_at);
comment on column reconcile.runs.t0 is
  'the run answers for what was created before; the service''s Date, less ten minutes';
comment on column reconcile.runs.finished_at is 'when it last ended; reconcile.run_states has each time';
comment on column reconcile.runs.rotation_nights is
  'all history is read once in so many nights: for so long, and a day to spare, what this run read counts';

-- What a proof rests on is only added to: each state of a run is a row here, and a slice and a recheck say when they
-- began and ended to count.
create table reconcile.run_states (
  id bigint generated always as identity primary key,
  run bigint not null references reconcile.runs (id) on delete cascade,
  recorded_at timestamptz not null default clock_timestamp(),
  state text not null,
  -- It came to its end: everything it ordered to be read again was, and what that showed was concluded.
  has_ended boolean not null
);
create index run_states_run on reconcile.run_states (run, recorded_at);
comment on table reconcile.run_states is
  'Each state of each run, append-only: a run that is resumed has an end, then a state running, then another end.';

create table reconcile.coverage (
  run bigint not null references reconcile.runs (id),
  slice integer not null,
  step text not null,
  resource text not null,
  path text not null,
  filter jsonb not null,
  direction text not null default 'newest_first' check (direction in ('newest_first', 'oldest_first')),
  created_from timestamptz,
  created_before timestamptz,
  -- Whether it shows every object of its bounds, so that what it does not show is not there.
  is_closed boolean not null,
  reason text not null,
  state text not null default 'pending' check (state in ('pending', 'complete', 'skipped', 'failed')),
  checkpoint jsonb,
  pages integer not null default 0,
  rows bigint not null default 0,
  read_at timestamptz,
  -- What became of its rows, by verdict.
  tally jsonb not null default '{}',
  closes_cycle boolean not null default false,
  note text,
  completed_at timestamptz,
  revoked_at timestamptz,
  primary key (run, slice)
);
create index coverage_read on reconcile.coverage (resource, read_at) where state = 'complete' and is_closed;
comment on table reconcile.coverage is
  'Which slices of the service''s lists were read, to their end; a page''s checkpoint commits with its changes.';
comment on column reconcile.coverage.read_at is 'the service''s Date of the first page: nothing later is proved';
comment on column reconcile.coverage.completed_at is 'database clock: since then it counts as read to its end';
comment on column reconcile.coverage.revoked_at is
  'database clock: since then it does not, since its list had left something out';

-- Open items of the mirror that a run has read, so that only the others are read by id. Of no use after it.
create table reconcile.seen (
  run bigint not null,
  resource text not null,
  id text collate "C" not null,
  primary key (run, resource, id)
);

create table reconcile.doubts (
  run bigint not null references reconcile.runs (id),
  resource text not null,
  id text collate "C" not null,
  why text not null,
  -- The slice that should have shown it, for what was not listed.
  slice integer,
  noticed_at timestamptz not null,
  due_at timestamptz not null,
  missing_since timestamptz,
  reads integer not null default 0,
  state text not null default 'waiting' check (state in ('waiting', 'absent', 'settled')),
  outcome text,
  recorded_at timestamptz not null default clock_timestamp(),
  settled_at timestamptz,
  object_at timestamptz,
  primary key (run, resource, id)
);
create index doubts_open on reconcile.doubts (run, due_at) where state <> 'settled';
create index doubts_unsettled on reconcile.doubts (run) where settled_at is null;
create index doubts_settled on reconcile.doubts (settled_at);
create index doubts_unreadable on reconcile.doubts (run) where outcome in ('unreadable', 'not concluded');
comment on table reconcile.doubts is 'Objects to be read again by id, after the grace (service time).';
comment on column reconcile.doubts.recorded_at is 'database clock, as is settled_at';
comment on column reconcile.doubts.object_at is
  'when the object was created, by the service''s clock: that moment is not proved; null: not known, and nothing is';

create table reconcile.findings (
  id bigint generated always as identity primary key,
  key text collate "C" not null unique,
  class text not null,
  identity text,
  severity text not null check (severity in ('critical', 'high', 'warning')),
  resource text,
  object_id text collate "C",
  differences jsonb not null default '[]',
  amount_at_risk_minor bigint,
  currency text,
  state text not null default 'open' check (state in ('open', 'reopened', 'acknowledged', 'healed')),
  first_seen timestamptz not null,
  last_seen timestamptz not null,
  healed_at timestamptz,
  cause text check (cause in
    ('missed_webhook', 'late', 'out_of_band_edit', 'our_fault', 'unexplained', 'initial_import')),
  evidence jsonb not null default '{}',
  -- Earlier lives of the same finding, oldest first.
  history jsonb not null default '[]',
  first_run bigint references reconcile.runs (id),
  run bigint references reconcile.runs (id),
  ack_by text,
  ack_at timestamptz,
  ack_note text,
  -- A period that had ended by then has nothing to do with the finding.
  object_at timestamptz
);
create index findings_unhealed on reconcile.findings (class, identity) where state <> 'healed';
create index findings_object on reconcile.findings (object_id, resource);
create index findings_run on reconcile.findings (run);
comment on column reconcile.findings.differences is
  '[{"field", "service", "mirror"}], money first';
comment on column reconcile.findings.object_at is
  'the earliest time of which it can falsify a figure, by the service''s clock: since when the object was there, or '
  'when the fact was due; null: not known, and every period is touched';

-- Each state of a finding that reports show is kept, so that a report as of a time says for ever what was known then.
create table reconcile.finding_versions (
  id bigint generated always as identity primary key,
  finding bigint not null references reconcile.findings (id) on delete cascade,
  recorded_at timestamptz not null default clock_timestamp(),
  -- The whole row, as it was from then on.
  content jsonb not null
);
create index finding_versions_finding on reconcile.finding_versions (finding, recorded_at);

-- Identities compare the mirror with them.
create table reconcile.daily_sums (
  run bigint not null references reconcile.runs (id),
  slice integer not null,
  day date not null,
  currency text collate "C" not null,
  type text collate "C" not null,
  status text collate "C" not null,
  n bigint not null,
  sum_minor numeric not null,
  primary key (run, slice, day, currency, type, status)
);
comment on table reconcile.daily_sums is
  'What a slice of transactions added up to at the service, by the merchant''s days.';

-- Whose objects the mirror holds, where the service names the account.
create table reconcile.account (
  only_one boolean primary key default true check (only_one),
  id text collate "C" not null,
  kept_at timestamptz not null default clock_timestamp()
);
comment on table reconcile.account is 'The account that the first run read, for ever: another one''s key is refused.';

create table reconcile.endpoints (
  id text collate "C" primary key,
  url text not null,
  -- Of receiver.secrets; null where its secret is not in the database.
  secret_id text,
  -- Service time; until then its former secret signs, too.
  rotation_ends_at timestamptz,
  registered_at timestamptz not null default now()
);
comment on table reconcile.endpoints is 'The webhook endpoints that were registered or rotated from here.';

create table reconcile.endpoint_calls (
  idempotency_key uuid primary key,
  kind text not null check (kind in ('register', 'rotate')),
  endpoint_id text collate "C",
  body jsonb not null,
  created_at timestamptz not null default now(),
  settled_at timestamptz,
  -- hidden: it was made, but the repeat of the call does not show the secret any more.
  outcome text check (outcome in ('done', 'hidden', 'refused')),
  check ((settled_at is null) = (outcome is null))
);
-- One open call at most: the next waits for its end.
create unique index endpoint_calls_open on reconcile.endpoint_calls ((true)) where settled_at is null;
comment on table reconcile.endpoint_calls is
  'Calls whose answer holds a secret once only, written before they are made: a crash can repeat them.';
