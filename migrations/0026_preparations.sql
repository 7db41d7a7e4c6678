-- A month that one person prepares and another closes: what the first saw, and what became of it.
create table reports.preparations (
  id bigint generated always as identity primary key,
  month date not null check (extract(day from month) = 1),
  time_zone text not null,
  as_of timestamptz not null,
  prepared_at timestamptz not null default clock_timestamp(),
  -- As the close will state it.
  prepared_by text not null check (btrim(prepared_by) <> ''),
  -- Of people.accounts; null: by a command, which asks for a name alone.
  account_id bigint,
  verdict text not null check (verdict in ('PASS', 'FAIL', 'INCOMPLETE')),
  -- Why the month is to be closed without a PASS.
  reason text,
  -- The account map of the journal.
  accounts jsonb not null,
  -- What stands above the rows of each report, with their hash; then the sums of what is booked, and a mark of the
  -- movements themselves, by which a change is noticed that leaves the sums as they were.
  reports json not null,
  booked json not null,
  movements_mark text not null,
  check (verdict = 'PASS' or reason is not null)
);
create index preparations_month on reports.preparations (month, id);
comment on table reports.preparations is
  'Months prepared for another person to close. One that has an end, or whose month is closed, stands no more.';

create table reports.preparation_ends (
  preparation bigint primary key references reports.preparations (id),
  ended_at timestamptz not null default clock_timestamp(),
  ended_by text not null,
  account_id bigint,
  how text not null check (how in ('closed', 'withdrawn', 'replaced'))
);
comment on table reports.preparation_ends is 'What became of a preparation: a row each, at most one.';

-- harmless: a row for each closed month, a few dozen in all
alter table reports.closes add column prepared_by text;
comment on column reports.closes.prepared_by is
  'Who prepared the month for another to close; null: whoever closed it did both, as tallyhook close lets them.';
