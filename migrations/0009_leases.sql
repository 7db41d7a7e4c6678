-- What one process at a time may do. A holder renews its lease and proves its token in each of its transactions.
create table reconcile.leases (
  name text collate "C" primary key,
  -- Grows with each holder: an earlier one is told by it, and refused.
  token bigint not null default 0,
  host text,
  pid integer,
  -- Tells the process from a later one with its id, to who is on the same machine; null where it cannot be told.
  process text,
  acquired_at timestamptz,
  -- Null: released.
  expires_at timestamptz,
  -- Makes the token part of a key: a new holder waits for transactions that have locked the old one `for key share`,
  -- and a renewal, which changes no key, waits for nobody.
  unique (name, token)
);
comment on table reconcile.leases is
  'Who reconciles this database, and until when unless the lease is renewed; one row a lease, by the database''s clock.';
insert into reconcile.leases (name) values ('reconciliation');
