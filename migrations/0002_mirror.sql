-- The mirror of the service's objects, the history of their states, and the record of erasures and of rows that a
-- person had written. Money is bigint minor units.
create schema mirror;

-- A row is made of groups of fields; version (and <group>_version) orders the states of a group as bytes, '' means that
-- the group was never seen.
create table mirror.orders (
  id text collate "C" primary key,
  order_number text,
  customer_id text collate "C",
  status text,
  subtotal bigint,
  discount_amount bigint,
  total bigint,
  currency text,
  description text,
  failure_code text,
  failure_reason text,
  subscription_id text collate "C",
  subscription_cycle integer,
  payment_method_id text collate "C",
  card_brand text,
  card_last_four text,
  coupon_code text,
  created_at timestamptz,
  updated_at timestamptz,
  data jsonb,
  version text collate "C" not null default '',
  source_updated_at timestamptz,
  content_hash text,
  deleted_at timestamptz,
  attempt_count integer,
  next_retry_at timestamptz,
  dunning_version text collate "C" not null default '',
  items jsonb,
  items_version text collate "C" not null default '',
  last_cause text not null
);
create index orders_customer on mirror.orders (customer_id);
create index orders_subscription on mirror.orders (subscription_id) where subscription_id is not null;
create index orders_created on mirror.orders (created_at, id);
create index orders_retry_due on mirror.orders (next_retry_at) where status = 'failed' and next_retry_at is not null;

create table mirror.transactions (
  id text collate "C" primary key,
  type text,
  status text,
  amount bigint,
  currency text,
  customer_id text collate "C",
  order_id text collate "C",
  failure_reason text,
  failure_code text,
  processor_transaction_id text,
  attempt_count integer,
  payment_method_id text collate "C",
  card_brand text,
  card_last_four text,
  created_at timestamptz,
  updated_at timestamptz,
  data jsonb,
  version text collate "C" not null default '',
  source_updated_at timestamptz,
  content_hash text,
  deleted_at timestamptz,
  inline jsonb,
  -- The order's time, then the entry's own ('<order's time>|<entry's time>|<Date>|...'), by which two entries of one
  -- updated_at are ordered. Of what a read is certain to have shown as the last state, both are the order's time.
  inline_version text collate "C" not null default '',
  last_cause text not null
);
create index transactions_order on mirror.transactions (order_id);
create index transactions_created on mirror.transactions (created_at, id);
-- Every report sums transactions: with this their wide rows, a gigabyte a million, are left alone.
create index transactions_reported on mirror.transactions (created_at)
  include (type, status, amount, currency, order_id, id, updated_at) where deleted_at is null;
-- Sales that were last read unsettled, also those that an event about their order has shown settled since.
create index transactions_unsettled on mirror.transactions (id)
  where type = 'sale' and deleted_at is null and data->>'status' in ('pending', 'in_progress');
comment on column mirror.transactions.inline is
  'the transaction as its order last carried it; data is the transaction as itself';

create table mirror.subscriptions (
  id text collate "C" primary key,
  customer_id text collate "C",
  plan_id text collate "C",
  status text,
  amount bigint,
  currency text,
  current_period_start timestamptz,
  current_period_end timestamptz,
  current_billing_cycle integer,
  total_billing_cycles integer,
  next_billing_date timestamptz,
  start_date timestamptz,
  end_date timestamptz,
  canceled_at timestamptz,
  payment_method_id text collate "C",
  card_brand text,
  card_last_four text,
  created_at timestamptz,
  updated_at timestamptz,
  data jsonb,
  version text collate "C" not null default '',
  source_updated_at timestamptz,
  content_hash text,
  deleted_at timestamptz,
  failure_reason text,
  attempt_count integer,
  next_retry_at timestamptz,
  detail_version text collate "C" not null default '',
  last_cause text not null
);
create index subscriptions_customer on mirror.subscriptions (customer_id);
create index subscriptions_created on mirror.subscriptions (created_at, id);
create index subscriptions_renewal_due on mirror.subscriptions (next_billing_date) where status = 'active';

create table mirror.customers (
  id text collate "C" primary key,
  email text,
  first_name text,
  last_name text,
  phone text,
  company text,
  default_payment_method_id text collate "C",
  created_at timestamptz,
  updated_at timestamptz,
  deleted boolean,
  data jsonb,
  version text collate "C" not null default '',
  source_updated_at timestamptz,
  content_hash text,
  absent_version text collate "C" not null default '',
  deleted_at timestamptz,
  last_cause text not null
);
create index customers_created on mirror.customers (created_at, id);
-- Where somebody was erased, each batch of events asks whether an address belongs to anybody else now: by these very
-- expressions, since others find no index.
create index customers_email on mirror.customers (lower(email)) where email is not null;
create index customers_phone on mirror.customers (('+' || regexp_replace(phone, '\D', '', 'g')))
  where phone is not null;

create table mirror.versions (
  seq bigint generated always as identity,
  resource text collate "C" not null,
  id text collate "C" not null,
  source_updated_at timestamptz not null,
  content_hash text collate "C" not null,
  recorded_at timestamptz not null default clock_timestamp(),
  observed_at timestamptz,
  cause text not null,
  data jsonb not null,
  -- jsonb refuses NUL and lone surrogates.
  replaced_text boolean not null default false,
  -- Two states that differed in personal data only have one content when the person was erased. Both stay in the
  -- history: when each was recorded, and whether a read saw it, is what reports as of a time rest on.
  twin smallint not null default 0,
  primary key (resource, id, source_updated_at, content_hash, twin)
);
-- Rows are recorded in the order of the clock: a few pages index millions of them.
create index versions_recorded on mirror.versions using brin (recorded_at) with (autosummarize = on);
create index versions_chargeback on mirror.versions (resource, id)
  where data->>'status' like 'chargeback%';
comment on table mirror.versions is 'Every distinct authentic state of every group of fields, append-only.';
comment on column mirror.versions.replaced_text is
  'NUL or a lone surrogate became U+FFFD in data; the exact bytes of an event are in inbox.receipts.raw';
comment on column mirror.versions.twin is
  'Above 0 where an erasure made the content equal to that of another state; only an erasure writes it.';

create table mirror.heals (
  seq bigint generated always as identity primary key,
  resource text collate "C" not null,
  id text collate "C" not null,
  healed_at timestamptz not null default clock_timestamp(),
  healed_by text not null,
  reason text not null,
  -- SHA-256 of the row as JSON; null where there was none.
  before_sha256 text,
  after_sha256 text not null,
  -- Names alone: values may be personal.
  changed_columns text[] not null
);
create index heals_object on mirror.heals (id);
comment on table mirror.heals is 'Rows that a person had written as the service shows the object, append-only.';

create table mirror.unbelieved (
  resource text collate "C" not null,
  id text collate "C" not null,
  source_updated_at timestamptz not null,
  content_hash text collate "C" not null,
  recorded_at timestamptz not null default clock_timestamp(),
  observed_at timestamptz,
  cause text not null,
  data jsonb not null,
  heal bigint references mirror.heals (seq),
  primary key (resource, id, source_updated_at, content_hash)
);
create index unbelieved_object on mirror.unbelieved (id);
comment on table mirror.unbelieved is
  'States that are dated more than an hour after they came, or that a person overruled: no row shows them, and no '
  'report reads them.';
comment on column mirror.unbelieved.heal is
  'the decision that overruled it: an event that brings it again changes nothing; null: it was never believed';

create table mirror.erasures (
  customer_id text collate "C" primary key,
  first_at timestamptz not null default now(),
  last_at timestamptz not null default now()
);
comment on table mirror.erasures is 'People whose data is redacted, now and whenever it is seen again.';

create table mirror.erasure_log (
  id bigint generated always as identity primary key,
  customer_id text collate "C" not null,
  erased_at timestamptz not null default now(),
  erased_by text not null,
  reason text,
  counts jsonb not null
);

-- Of this database alone, so that hashes say nothing to whoever has them without it.
create table mirror.erasure_key (
  is_only boolean primary key default true check (is_only),
  key bytea not null
);
insert into mirror.erasure_key (key) values (uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));

-- By these later events about an erased person are known, where they name an address and no customer.
create table mirror.erased_contacts (
  hash bytea primary key,
  customer_id text collate "C" not null references mirror.erasures (customer_id)
);
comment on table mirror.erased_contacts is
  'E-mail addresses and phone numbers of erased people, as keyed hashes: never the addresses themselves.';
