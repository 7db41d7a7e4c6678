-- Handlers that no process runs, or whose process ends again and again, as those say who start it. Rows only while it is so.
create table dispatch.hosts (
  supervisor text,
  number integer,
  files text[] not null,
  is_apart boolean not null,
  down_since timestamptz not null,
  reason text not null,
  seen_at timestamptz not null,
  primary key (supervisor, number)
);
comment on table dispatch.hosts is
  'Files of handlers that do not run, or end their process again and again. A row is removed when that is over.';
comment on column dispatch.hosts.supervisor is 'The program that starts the process: a worker, or handlers run.';
comment on column dispatch.hosts.is_apart is 'The other handlers run without them.';
comment on column dispatch.hosts.seen_at is 'When the supervisor last said so; it says so every ten seconds.';
