-- Runs that people order a worker to do, which workers are there to do them, and the board of findings.
create table reconcile.run_orders (
  id bigint generated always as identity primary key,
  -- Of the run that does it: as for a nightly run, its key keeps an order to one run, whichever worker takes it.
  run_key text collate "C" not null unique,
  kind text not null check (kind in ('nightly', 'full', 'range')),
  range_from timestamptz,
  range_to timestamptz,
  report_only boolean not null,
  -- An e-mail address, or the name that a command was given.
  ordered_by text not null,
  ordered_at timestamptz not null default clock_timestamp(),
  ended_at timestamptz,
  outcome text check (outcome in ('done', 'failed', 'withdrawn')),
  -- Why it failed.
  error text,
  check ((ended_at is null) = (outcome is null))
);
-- One at a time: only one run can be at work, and what was ordered twice is wanted once.
create unique index run_orders_open on reconcile.run_orders ((true)) where ended_at is null;
comment on table reconcile.run_orders is 'Runs that a worker is to do now, because a person wants them.';

create table reconcile.order_takers (
  host text not null,
  pid integer not null,
  seen_at timestamptz not null default clock_timestamp(),
  primary key (host, pid)
);
comment on table reconcile.order_takers is 'Workers that take such orders, and when each was last at work.';
