-- The rank of `statusRank` in src/core/mirror/version.ts. It decides between states with the same time until a read confirms
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

create or replace function reports.dunning_state(p_order_status text, p_subscription_status text) returns text
language sql immutable parallel safe as $$
  select case when reports.is_paid(p_order_status) then 'recovered'
              when p_order_status = 'voided' then 'lost'
              when p_subscription_status in ('active', 'past_due', 'paused') or p_subscription_status is null
                then 'in progress' else 'lost' end
$$;
comment on function reports.dunning_state is
  'What became of a renewal whose charge was declined, by its order and its subscription. Nobody collects an order that '
  'was voided. Not known to be over is in progress.';

-- Each function below is one expression. The planner inlines it, so an index on the expression is still used.
create or replace function reports.is_unsettled(p_type text, p_status text) returns boolean
language sql immutable parallel safe as $$
  select p_type = 'sale' and p_status in ('pending', 'in_progress')
$$;
comment on function reports.is_unsettled is
  'Whether a transaction is a sale that is not confirmed yet. It counts as sold if its order is paid.';

create or replace function reports.is_settling(p_type text, p_status text) returns boolean
language sql immutable parallel safe as $$
  select p_type = 'sale' and p_status in ('in_progress', 'succeeded')
$$;
comment on function reports.is_settling is
  'Whether a transaction is a sale that is settled, or on its way there.';

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

-- In production a sale is settled one to three business days after it was paid: its status changes, and so may the time
-- of its order. No event is documented for that, so only a read reveals it: it is neither drift nor a missed webhook.
-- The nightly run uses both functions below, the delivery statement the second.
create or replace function reports.is_settled_since(p_type text, p_before text, p_after text) returns boolean
language sql immutable parallel safe as $$
  select reports.is_unsettled(p_type, p_before) and reports.is_settling(p_type, p_after)
         and reports.status_rank(p_after) > reports.status_rank(p_before)
$$;
comment on function reports.is_settled_since is
  'Whether a transaction with these two statuses, one after the other, is a sale that came nearer to its settlement.';

-- Every event about an order except a chargeback's comes with a new transaction: a sale, a decline or a refund. Stable,
-- as the subtraction is: the planner inlines no function that promises more.
create or replace function reports.is_settlement(p_changed_at timestamptz, p_last_made_at timestamptz) returns boolean
language sql stable parallel safe as $$
  select p_last_made_at < p_changed_at - reports.same_moment()
$$;
comment on function reports.is_settlement is
  'Whether an order with a settled sale changed by that settlement: no transaction of it was made with the change.';
