-- What an order waits for: the payment of a declined renewal, or the answer to a chargeback. In place of an index that
-- names the status, which would keep each change of one from being HOT (0011); this column changes with few of them.
alter table mirror.orders add column awaits text;
comment on column mirror.orders.awaits is
  'payment: a declined renewal; answer: an open chargeback; null: neither; a trigger keeps it';

-- As mirror/awaits.sql has them: 0029 fills the column for the rows that are there, and must not miss what running
-- processes write meanwhile.
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
