-- People: who may sign in to the dashboard, what they may do, and what they did.
create schema people;

create table people.accounts (
  id bigint generated always as identity primary key,
  email text collate "C" not null unique check (email = lower(email)),
  -- Sets of permissions (src/people/permissions.ts).
  roles text[] not null,
  -- scrypt, with its parameters and salt; null: this person signs in elsewhere.
  password_hash text,
  -- The secret of the app that shows codes, encrypted.
  totp_key_id text,
  totp_ciphertext bytea,
  -- The step of the last code that was accepted: no code counts twice.
  totp_last_step bigint,
  -- Who the person is at the OpenID provider.
  issuer text,
  subject text,
  -- Grows when roles or password change: sessions that began before get a new token, or end.
  version integer not null default 1,
  disabled_at timestamptz,
  created_at timestamptz not null default now(),
  unique (issuer, subject),
  check ((totp_key_id is null) = (totp_ciphertext is null) and (issuer is null) = (subject is null))
);
comment on table people.accounts is 'People who may sign in to the dashboard. An account is disabled, never deleted.';

create table people.sessions (
  -- SHA-256 of the cookie's token.
  token_hash bytea primary key,
  -- Names the session on pages, where its token must not stand.
  id uuid not null unique default gen_random_uuid(),
  account_id bigint not null references people.accounts (id),
  account_version integer not null,
  -- How the person signed in.
  method text not null check (method in ('password', 'link', 'oidc', 'proxy')),
  address text not null,
  user_agent text not null,
  began_at timestamptz not null,
  last_seen_at timestamptz not null
);
create index sessions_account on people.sessions (account_id);
comment on table people.sessions is 'Who is signed in. A session that ended is deleted.';

create table people.sign_in_links (
  token_hash bytea primary key,
  account_id bigint not null references people.accounts (id),
  expires_at timestamptz not null
);
comment on table people.sign_in_links is 'Links that sign a person in once.';

-- What the library rate-limiter-flexible keeps: failed attempts to sign in, by account and by address.
create table people.attempts (
  key text collate "C" primary key,
  points integer not null default 0,
  -- Milliseconds since 1970.
  expire bigint
);
comment on table people.attempts is 'Failed attempts to sign in, by account and by address, each as a hash.';

create table people.audit (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  -- Null: nobody who has an account.
  account_id bigint,
  -- The e-mail address of the account, or the name that a command was given.
  actor text not null,
  via text not null check (via in ('dashboard', 'command line')),
  address text,
  -- As in `event.replayed`.
  action text not null,
  subject_kind text,
  subject_id text,
  before jsonb,
  after jsonb
);
create index audit_subject on people.audit (subject_kind, subject_id, id);
create index audit_actor on people.audit (actor, id);
create index audit_action on people.audit (action, id);
create index audit_at on people.audit (at);
comment on table people.audit is 'Who did what to what, in the transaction that did it. Nothing changes or removes a row.';

create table people.cases (
  -- What the case is about, as in `dunning`, `chargeback`, `finding`, `alert`.
  subject_kind text not null,
  subject_id text collate "C" not null,
  assignee bigint references people.accounts (id),
  snoozed_until timestamptz,
  -- Grows with each change: a form that was filled in on an earlier one is refused.
  version integer not null default 1,
  changed_at timestamptz not null,
  primary key (subject_kind, subject_id)
);
create index cases_assignee on people.cases (assignee) where assignee is not null;
comment on table people.cases is 'Who looks after something, and until when it may rest. A thing that nobody touched has no row.';

create table people.notes (
  id bigint generated always as identity primary key,
  subject_kind text not null,
  subject_id text collate "C" not null,
  author bigint not null references people.accounts (id),
  at timestamptz not null,
  -- Free text of a person: what an erasure removes whole.
  text text not null
);
create index notes_subject on people.notes (subject_kind, subject_id, id);
comment on table people.notes is 'What people wrote on a case.';
