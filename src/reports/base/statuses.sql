-- Only decides between states of one time that no read has settled; see src/mirror/version.ts.
create or replace function reports.status_rank(p_status text) returns integer
language sql immutable parallel safe as $$
  select case
    when p_status = 'pending' then 0 when p_status = 'in_progress' then 1 when p_status = 'failed' then 2
    when p_status in ('active', 'succeeded') then 3 when p_status in ('paused', 'past_due') then 4
    when p_status in ('partially_refunded', 'refund_failed') then 5 when p_status in ('refunded', 'voided') then 6
    when p_status = 'chargeback' then 7
    when p_status in ('completed', 'chargeback_accepted', 'chargeback_dismissed') then 8
    when p_status = 'canceled' then 9 else 4 end
$$;

create or replace function reports.is_paid(p_order_status text) returns boolean
language sql immutable parallel safe as $$
  select p_order_status in ('succeeded', 'partially_refunded', 'refunded', 'refund_failed', 'chargeback',
                            'chargeback_accepted', 'chargeback_dismissed')
$$;
comment on function reports.is_paid is
  'Whether an order of this status was paid, whatever was given back since.';

create or replace function reports.is_unsettled(p_type text, p_status text) returns boolean
language sql immutable parallel safe as $$
  select p_type = 'sale' and p_status in ('pending', 'in_progress')
$$;
comment on function reports.is_unsettled is
  'Whether a transaction is a sale that is not confirmed yet; it is sold where its order is paid.';
