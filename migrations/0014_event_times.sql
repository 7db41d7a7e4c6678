-- What the delivery statement asks of an event, beside the object that it is about: one narrow table is read for it, and
-- the bytes are left alone. Names of their own: processes of the release before join the two tables and name the
-- receipt's columns without a table.
alter table inbox.progress add column event_type text, add column event_at timestamptz, add column arrived_at timestamptz;
comment on column inbox.progress.arrived_at is
  'with event_type and event_at as in inbox.receipts, written with the object; null: not copied, see the receipt';
