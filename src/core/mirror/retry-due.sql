-- Which failed orders wait for a retry, in a column of its own. An index on next_retry_at with the status in its
-- predicate would keep each update that changes a status from being HOT; this column changes with few of them.
create or replace function mirror.note_retry_due() returns trigger language plpgsql as $$
begin
    new.retry_due_at := case when new.status = 'failed' then new.next_retry_at end;
    return new;
end
$$;

create or replace trigger orders_note_retry_due before insert or update of status, next_retry_at, retry_due_at on mirror.orders
  for each row when (new.next_retry_at is not null or new.retry_due_at is not null)
  execute function mirror.note_retry_due();
