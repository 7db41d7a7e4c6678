-- The feed: every change of the mirror, once, in an order that a reader can follow by a number.
create schema feed;

-- A sequence of its own: writers take their numbers in the order in which they hold the objects' rows.
create sequence feed.change_numbers as bigint;

create table feed.changes (
  seq bigint not null,
  resource text collate "C" not null,
  id text collate "C" not null,
  kind text collate "C" not null,
  -- The object's status before and after; null where it has none, or did not exist.
  from_status text,
  to_status text,
  -- Of a refund: its transaction and minor units.
  transaction_id text,
  amount bigint,
  currency text,
  -- The state in mirror.versions that the change led to.
  state_group text collate "C",
  state_at timestamptz,
  state_hash text collate "C",
  cause text not null,
  -- The state came late: a later one was known already, and the mirror's row has not changed.
  is_superseded boolean not null default false,
  recorded_at timestamptz not null default now(),
  primary key (seq)
) partition by range (seq);
create table feed.changes_1 partition of feed.changes for values from (1) to (10000001);
-- Where no partition was made in time.
create table feed.changes_default partition of feed.changes default;
comment on table feed.changes is
  'What changed in the mirror, one row an object and change. Read it by feed.readable_until() alone: rows commit late.';

-- What must never be told twice, for ever: refunds by their transaction, and what became of a dispute.
create table feed.facts (
  resource text collate "C" not null,
  id text collate "C" not null,
  kind text collate "C" not null,
  -- The refund's transaction; '' where an object has one such fact at most.
  subject text collate "C" not null,
  primary key (resource, id, kind, subject)
);
comment on table feed.facts is 'Refunds and disputes that feed.changes has told, kept when their changes are removed.';

-- Who reads the feed, and how far it has come.
create table feed.consumers (
  name text collate "C" primary key,
  position bigint not null,
  -- When the position last moved, by the database's clock.
  moved_at timestamptz not null default now(),
  created_at timestamptz not null default now()
);
comment on table feed.consumers is 'Readers of feed.changes: all up to the position was handled. What nobody needs is removed.';
