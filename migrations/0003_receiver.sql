-- What a receiver needs to verify and to answer: the signing secrets, the table that readiness writes to, and the count
-- of its answers.
create schema receiver;

-- Encrypted with the key that key_id names.
create table receiver.secrets (
  id text primary key,
  ciphertext bytea not null,
  key_id text not null,
  not_before timestamptz,
  not_after timestamptz,
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  retired_at timestamptz,
  note text
);

-- "Postgres takes an insert" is proved by an insert that is rolled back.
create table receiver.probes (
  at timestamptz not null
);

create table receiver.answers_by_minute (
  minute timestamptz not null,
  reason text collate "C" not null,
  times bigint not null,
  primary key (minute, reason)
);
comment on table receiver.answers_by_minute is 'How the receivers answered, written every few seconds.';
