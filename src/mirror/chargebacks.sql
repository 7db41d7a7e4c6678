-- These functions define the state of a chargeback, once for mirror.disputed_sales and reports.chargebacks. The two differ
-- in the source of their orders and transactions. One function for the whole, with the view as its case without a time,
-- took twice as long: the planner plans for both cases (docs/decisions.md).

-- What the states of an order recorded by p_as_of (null: all of them) say of its chargeback: when it was first and last
-- shown, when it was accepted or dismissed, and when the order left the chargeback statuses.
create or replace function mirror.chargeback_of_order(p_order text, p_as_of timestamptz)
returns table (first_at timestamptz, last_at timestamptz, accepted_at timestamptz, dismissed_at timestamptz,
               last_status text, cause text, left_at timestamptz)
language sql stable parallel safe as $$
  select shown.*, (
      select min(v.source_updated_at) from mirror.versions v
      where v.resource = 'order' and v.id = p_order and v.source_updated_at > shown.last_at
        and (p_as_of is null or v.recorded_at <= p_as_of) and v.data->>'status' not like 'chargeback%')
  from (
    select min(v.source_updated_at) as first_at, max(v.source_updated_at) as last_at,
           min(v.source_updated_at) filter (where v.data->>'status' = 'chargeback_accepted') as accepted_at,
           min(v.source_updated_at) filter (where v.data->>'status' = 'chargeback_dismissed') as dismissed_at,
           (array_agg(v.data->>'status' order by v.source_updated_at desc, v.data->>'status' collate "C" desc))[1] as last_status,
           (array_agg(v.cause order by v.source_updated_at desc, v.data->>'status' collate "C" desc))[1] as cause
    from mirror.versions v
    where v.resource = 'order' and v.id = p_order and (p_as_of is null or v.recorded_at <= p_as_of)
      and v.data->>'status' like 'chargeback%'
  ) shown
$$;

-- The same for the states of a transaction, which show no outcome.
create or replace function mirror.chargeback_of_transaction(p_transaction text, p_as_of timestamptz)
returns table (first_at timestamptz, last_at timestamptz, cause text, left_at timestamptz)
language sql stable parallel safe as $$
  select shown.*, (
      select min(v.source_updated_at) from mirror.versions v
      where v.resource in ('transaction', 'transaction.inline') and v.id = p_transaction
        and v.source_updated_at > shown.last_at and (p_as_of is null or v.recorded_at <= p_as_of)
        and v.data->>'status' not like 'chargeback%')
  from (
    select min(v.source_updated_at) as first_at, max(v.source_updated_at) as last_at,
           (array_agg(v.cause order by v.source_updated_at desc, v.content_hash))[1] as cause
    from mirror.versions v
    where v.resource in ('transaction', 'transaction.inline') and v.id = p_transaction
      and (p_as_of is null or v.recorded_at <= p_as_of) and v.data->>'status' like 'chargeback%'
  ) shown
$$;

-- The order's present status counts before its past ones, and the order before its sale. If the status goes back to a
-- normal one without "accepted" or "dismissed" in between, the chargeback counts as dismissed.
create or replace function mirror.chargeback_state(p_order_status text, p_first_at timestamptz, p_last_status text,
                                                   p_sale_status text)
returns text language sql immutable parallel safe as $$
  select case
      when p_order_status = 'chargeback_accepted' then 'accepted'
      when p_order_status = 'chargeback_dismissed' then 'dismissed'
      when p_order_status like 'chargeback%' then 'opened'
      when p_last_status = 'chargeback_accepted' then 'accepted'
      when p_first_at is not null then 'dismissed'
      when p_sale_status like 'chargeback%' then 'opened'
      else 'dismissed' end
$$;

-- When the chargeback reached that state; null while it is open.
create or replace function mirror.chargeback_ended_at(
  p_state text, p_first_at timestamptz, p_last_at timestamptz, p_accepted_at timestamptz, p_dismissed_at timestamptz,
  p_left_at timestamptz, p_sale_last_at timestamptz, p_sale_left_at timestamptz)
returns timestamptz language sql immutable parallel safe as $$
  select case
      when p_state = 'opened' then null
      when p_state = 'accepted' then p_accepted_at
      when p_first_at is not null then coalesce(p_dismissed_at, p_left_at, p_last_at)
      else coalesce(p_sale_left_at, p_sale_last_at) end
$$;

-- Of two sales of one order, the first that was disputed has the key of the order's case, which it had when it was the
-- only one; any other has its own id.
create or replace function mirror.dispute_key(p_case text, p_transaction text, p_nth bigint)
returns text language sql immutable parallel safe as $$
  select case when p_nth > 1 then p_transaction else p_case end
$$;

-- One row for each disputed sale: movements are those of sales. Where a sale of the order shows a chargeback, those that
-- show one are disputed; where the order alone does, all of its sales that stand. The case (`key`) is the order's, and so
-- is what became of it. Keys are plain columns, so that whoever asks for some of them finds them by indexes.
create or replace view mirror.disputed_sales as
select k.key, mirror.dispute_key(k.key, sale.id, sale.nth) as sale_key, k.order_id, sale.id as transaction_id, now.state,
       coalesce(sale.amount, case when sale.n > 1 then null else o.total end) as amount,
       coalesce(sale.currency, o.currency) as currency, began.at as opened_at, ordered.accepted_at,
       case when now.state = 'dismissed' then greatest(ended.at, began.at) else ordered.dismissed_at end as dismissed_at,
       case when ended.at is not null then greatest(ended.at, began.at) end as resolved_at,
       coalesce(ordered.cause, sale.cause) as last_cause
from (
  select v.id as key, v.id as order_id from mirror.versions v
  where v.resource = 'order' and v.data->>'status' like 'chargeback%'
  union
  select t.order_id, t.order_id
  from mirror.versions v join mirror.transactions t on t.id = v.id
  where v.resource in ('transaction', 'transaction.inline') and v.data->>'status' like 'chargeback%'
    and t.order_id is not null
  union
  select t.id, null
  from mirror.versions v join mirror.transactions t on t.id = v.id
  where v.resource in ('transaction', 'transaction.inline') and v.data->>'status' like 'chargeback%'
    and t.order_id is null
) k
left join mirror.orders o on o.id = k.order_id
cross join lateral mirror.chargeback_of_order(k.order_id, null) ordered
left join lateral (
  select s.*, count(*) over () as n
  from (
    select t.id, t.amount, t.currency, t.status, shown.first_at, shown.last_at, shown.cause,
           row_number() over (order by shown.first_at, t.created_at, t.id) as nth,
           count(shown.first_at) over () as n_shown
    from mirror.transactions t cross join lateral mirror.chargeback_of_transaction(t.id, null) shown
    -- Null where there is an order: then no index is searched for it.
    where (t.order_id = k.order_id or t.id = case when k.order_id is null then k.key end)
      and (shown.first_at is not null or reports.is_sale_that_stands(t.type, t.status))
  ) s where s.first_at is not null or s.n_shown = 0
) sale on true
cross join lateral (
  select mirror.chargeback_state(o.status, ordered.first_at, ordered.last_status, sale.status) as state
) now
cross join lateral (
  select case when sale.nth > 1 then coalesce(sale.first_at, ordered.first_at)
              else least(ordered.first_at, sale.first_at) end as at
) began
cross join lateral (
  -- When a status was left is looked up where nothing else tells the end, so not in the joins above.
  select mirror.chargeback_ended_at(now.state, ordered.first_at, ordered.last_at, ordered.accepted_at,
                                    ordered.dismissed_at, ordered.left_at, sale.last_at, (
           select x.left_at from mirror.chargeback_of_transaction(sale.id, null) x)) as at
) ended;
comment on view mirror.disputed_sales is
  'key: that of mirror.chargebacks; sale_key: unique, the same for the first disputed sale of an order, the transaction''s id for any other';

-- The cases: what a person answers is one for each order, with all of its disputed sales. The amount is null where one
-- of theirs is not known, or they are in several currencies.
create or replace view mirror.chargebacks as
select s.key, s.order_id, min(s.transaction_id) filter (where s.sale_key = s.key) as transaction_id,
       case when bool_or(s.state = 'opened') then 'opened' when bool_or(s.state = 'accepted') then 'accepted'
            else 'dismissed' end as state,
       case when count(s.amount) = count(*) and min(s.currency) is not distinct from max(s.currency)
            then sum(s.amount)::bigint end as amount,
       case when min(s.currency) = max(s.currency) then min(s.currency) end as currency,
       min(s.opened_at) as opened_at, min(s.accepted_at) as accepted_at, max(s.dismissed_at) as dismissed_at,
       case when not bool_or(s.state = 'opened') then max(s.resolved_at) end as resolved_at,
       min(s.last_cause) filter (where s.sale_key = s.key) as last_cause
from mirror.disputed_sales s group by s.key, s.order_id;
comment on view mirror.chargebacks is 'key: order_id; the transaction''s id where there is no order';
