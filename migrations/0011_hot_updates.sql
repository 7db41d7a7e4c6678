-- Updates of the mirror's rows that leave the indexes alone (HOT): a page keeps room for the next state of its rows,
-- and no index names a column that most states change. Pages that are there get their room as their rows change.
alter table mirror.orders set (fillfactor = 85);
alter table mirror.transactions set (fillfactor = 85);
alter table mirror.subscriptions set (fillfactor = 85);
alter table mirror.customers set (fillfactor = 85);

-- Reports sum transactions by an index alone, except where rows have changed since the last vacuum: those they look up.
alter table mirror.transactions set (
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02
);

-- Every full page of the history has a gap that a small row would fit into, and each event would change an old page
-- for it. With this reserve the gap is too small. Its rows never change, so a vacuum may freeze them at once: their
-- pages are not written again.
alter table mirror.versions set (fillfactor = 95, autovacuum_freeze_min_age = 0);

-- In place of an index with status in its predicate, which keeps every change of a status from being HOT.
alter table mirror.orders add column retry_due_at timestamptz;
comment on column mirror.orders.retry_due_at is 'next_retry_at while status is failed; a trigger keeps it';

-- As mirror/retry-due.sql has them: 0012 fills the column for the rows that are there, and must not miss what running
-- processes write meanwhile.
create or replace function mirror.note_retry_due() returns trigger language plpgsql as $$
begin
    new.retry_due_at := case when new.status = 'failed' then new.next_retry_at end;
    return new;
end
$$;
create or replace trigger orders_note_retry_due before insert or update of status, next_retry_at, retry_due_at on mirror.orders
  for each row when (new.next_retry_at is not null or new.retry_due_at is not null)
  execute function mirror.note_retry_due();
