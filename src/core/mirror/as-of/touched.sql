-- The keys of chargebacks that may have changed since p_as_of: orders of which a state, or a state of a transaction,
-- was recorded later. A transaction without an order is its own key.
create or replace function reports.touched(p_as_of timestamptz) returns table (key text)
language sql stable parallel safe as $$
  select v.id from mirror.versions v where v.resource = 'order' and v.recorded_at > p_as_of
  union
  select coalesce(t.order_id, t.id)
  from mirror.versions v join mirror.transactions t on t.id = v.id
  where v.resource in ('transaction', 'transaction.inline') and v.recorded_at > p_as_of
$$;
