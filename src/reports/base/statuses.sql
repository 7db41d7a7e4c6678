-- The rank of `statusRank` in src/mirror/version.ts. It decides between states with the same time until a read confirms
-- the last one.
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

-- Each function below is one expression. The planner inlines it, so an index on the expression is still used.
create or replace function reports.is_unsettled(p_type text, p_status text) returns boolean
language sql immutable parallel safe as $$
  select p_type = 'sale' and p_status in ('pending', 'in_progress')
$$;
comment on function reports.is_unsettled is
  'Whether a transaction is a sale that is not confirmed yet. It counts as sold if its order is paid.';

-- A sale that was charged back was captured before. The chargeback is a movement of its own.
create or replace function reports.is_captured(p_type text, p_status text) returns boolean
language sql immutable parallel safe as $$
  select p_type = 'sale' and p_status in ('succeeded', 'chargeback')
$$;
comment on function reports.is_captured is
  'Whether a transaction is a sale whose money was taken, whatever was given back since.';

create or replace function reports.is_refunded(p_type text, p_status text) returns boolean
language sql immutable parallel safe as $$
  select p_type = 'refund' and p_status = 'succeeded'
$$;
comment on function reports.is_refunded is
  'Whether a transaction is a refund that gave money back; a failed one is repeated or given up.';

create or replace function reports.is_sale_that_stands(p_type text, p_status text) returns boolean
language sql immutable parallel safe as $$
  select p_type = 'sale' and p_status not in ('failed', 'voided')
$$;
comment on function reports.is_sale_that_stands is
  'Whether a transaction is a sale that neither failed nor was voided, settled or not.';

create or replace function reports.same_moment() returns interval
language sql immutable parallel safe as $$
  select interval '2 seconds'
$$;
comment on function reports.same_moment is
  'How far apart two times of one change may be: an order and its sale change together, but not in the same instant.';
