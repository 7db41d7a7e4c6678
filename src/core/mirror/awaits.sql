-- What an order waits for, in a column of its own: an index that names the status would keep each update that changes a
-- status from being HOT. A chargeback that only the sale shows is not in it.
create or replace function mirror.note_awaits() returns trigger language plpgsql as $$
begin
    new.awaits := case
      when new.status = 'failed' and new.subscription_cycle > 1 then 'payment'
      when new.status like 'chargeback%' and new.status not in ('chargeback_accepted', 'chargeback_dismissed') then 'answer'
    end;
    return new;
end
$$;

create or replace trigger orders_note_awaits before insert or update of status, subscription_cycle, awaits on mirror.orders
  for each row when (new.status = 'failed' or new.status like 'chargeback%' or new.awaits is not null)
  execute function mirror.note_awaits();
