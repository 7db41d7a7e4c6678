-- Restores of this database from a backup. What happened before the lost system stopped is known to people and to other
-- programs, though this database has yet to learn it.
create table mirror.restores (
  id bigint generated always as identity primary key,
  restored_at timestamptz not null default clock_timestamp(),
  -- The moment of the backup.
  taken_at timestamptz not null,
  ran_until timestamptz not null,
  service_ran_until timestamptz not null,
  restored_by text not null,
  caught_up_at timestamptz,
  check (taken_at <= ran_until)
);
comment on table mirror.restores is 'When this database was restored from a backup, and what is not told again since.';
comment on column mirror.restores.ran_until is
  'when the lost system last worked; service_ran_until: the same by the service''s clock';
comment on column mirror.restores.caught_up_at is 'when a run that read everything was complete; null: none has been yet';
