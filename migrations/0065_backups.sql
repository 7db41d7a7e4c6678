-- The last backup by the command `backup`. One row from its first try on: whoever makes backups is told when none is made.
create table mirror.backups (
  one boolean primary key default true check (one),
  tried_since timestamptz not null default clock_timestamp(),
  taken_at timestamptz
);
comment on table mirror.backups is 'The last backup that was verified; a row from the first try on.';
comment on column mirror.backups.tried_since is 'When the first backup was begun.';
comment on column mirror.backups.taken_at is 'The moment of the last one that was read back and whole; null: none yet.';
