-- The tasks that workers run on a schedule. Who runs one, and since when, goes by the database's clock: two workers may
-- have two.
create table inbox.tasks (
  name text collate "C" primary key,
  known_since timestamptz not null default clock_timestamp(),
  -- How many times it was started. A start names the last one, so that of two workers one starts it.
  starts bigint not null default 0,
  started_at timestamptz,
  -- The worker whose turn it is, until then unless it renews. Null: nobody's.
  holder uuid,
  held_until timestamptz,
  check ((holder is null) = (held_until is null)),
  check ((starts = 0) = (started_at is null))
);
comment on table inbox.tasks is 'The tasks that workers run on a schedule: when each was started, and whose turn it is.';
