-- The state of each subscription that counts at both ends of a period. The state at a time is the last one known before
-- it. Where none is known (the initial import sees present states only), it is derived from the first known one. Active
-- and past due subscriptions are live. p_ids: only of these; null: of all.
create or replace function reports.recurring_ends(p_from timestamptz, p_to timestamptz,
                                                  p_as_of timestamptz default null, p_ids text[] default null)
returns table (at timestamptz, id text, currency text, amount bigint, net_amount bigint, cycle_interval text,
               interval_count bigint, created_at timestamptz, is_past_due boolean, is_live boolean, is_assumed boolean)
language sql stable parallel safe as $$
  select distinct on (e.at, s.id collate "C") e.at, s.id, s.currency, s.amount, s.net_amount, s.cycle_interval,
         s.interval_count, s.created_at, s.changed_at < e.at and s.status = 'past_due' is true,
         coalesce(case when s.changed_at < e.at then s.status in ('active', 'past_due')
                       else s.status in ('active', 'past_due', 'paused', 'completed')
                         or s.canceled_at >= e.at end, false), s.is_assumed
  from reports.subscription_states(p_as_of) s
  join (values (p_from), (p_to)) as e(at) on s.created_at < e.at
  where p_ids is null or s.id collate "C" = any(p_ids)
  order by e.at, s.id collate "C", s.changed_at < e.at desc,
           case when s.changed_at < e.at then s.nth else -s.nth end desc
$$;

-- The unknown values of mrr. A subscription whose currency changed is neither new nor lost.
create or replace function reports.mrr_unknown(p_from timestamptz, p_to timestamptz, p_zone text,
                                               p_as_of timestamptz default null)
returns table (what text, n bigint)
language sql stable parallel safe as $$
  with odd as materialized (
    -- All others have one currency and show all in each state: the ends of a few are cheap.
    select v.id, bool_or(jsonb_typeof(v.data->'created_at') is distinct from 'string') as is_undated
    from mirror.versions v
    where v.resource = 'subscription' and (p_as_of is null or v.recorded_at <= p_as_of)
    group by v.id
    having min(reports.one_spelling(v.data->'plan'->>'currency'))
        is distinct from max(reports.one_spelling(v.data->'plan'->>'currency'))
      or bool_or(not reports.is_recurring_known('plan', v.data->'plan')
                 or not reports.is_recurring_known('billing_cycle', v.data->'billing_cycle')
                 or v.data->'current_billing_cycle' is null or v.data->'current_billing_cycle' = 'null'
                 or jsonb_typeof(v.data->'created_at') is distinct from 'string')
  ), ends as materialized (
    select e.id, e.currency, e.is_assumed,
           reports.monthly_amount(e.amount, e.cycle_interval, e.interval_count) is not null as is_known
    from reports.recurring_ends(p_from, p_to, p_as_of, array(select o.id from odd o)) e where e.is_live
  )
  select 'subscription.plan', count(distinct e.id) from ends e where not e.is_known
  union all
  select 'subscription.plan_shown', count(distinct e.id) from ends e where e.is_assumed and e.is_known
  union all
  select 'subscription.one_currency', count(*)
  from (select e.id from ends e group by e.id having min(e.currency) <> max(e.currency)) moved
  union all
  select 'subscription.created_at', count(*) from odd o where o.is_undated
$$;

-- How the monthly amount of the subscriptions moved between both ends of the period. A change of currency is a
-- contraction in the one and an expansion in the other. A subscription that ended was lost involuntarily if its last
-- charge failed and was never paid.
create or replace function reports.mrr(p_from timestamptz, p_to timestamptz, p_zone text,
                                       p_as_of timestamptz default null)
returns table (currency text, opening bigint, new_mrr bigint, expansion bigint, contraction bigint,
               churn_voluntary bigint, churn_involuntary bigint, reactivation bigint, closing bigint,
               at_risk_opening bigint, at_risk_closing bigint, discounts bigint, subscriptions bigint)
language sql stable parallel safe as $$
  with nearest as (
    select e.* from reports.recurring_ends(p_from, p_to, p_as_of) e
  ), known as materialized (
    select n.at, n.id, n.currency, case when n.is_live then coalesce(m.net, 0) else 0 end as amount,
           case when n.is_live then coalesce(m.gross - m.net, 0) else 0 end as discount, n.is_live,
           n.is_live and n.is_past_due as is_at_risk, n.created_at
    from nearest n
    cross join lateral (
      select reports.monthly_amount(n.amount, n.cycle_interval, n.interval_count) as gross,
             reports.monthly_amount(n.net_amount, n.cycle_interval, n.interval_count) as net
    ) m
  ), both_ends as materialized (
    select coalesce(c.id, o.id) as id, coalesce(o.currency, c.currency) as currency,
           coalesce(o.amount, 0) as opening, coalesce(c.amount, 0) as closing,
           coalesce(c.created_at, o.created_at) as created_at, coalesce(c.discount, 0) as discount,
           coalesce(o.is_live, false) as was_live, coalesce(c.is_live, false) as is_live,
           coalesce(o.is_at_risk, false) as was_at_risk, coalesce(c.is_at_risk, false) as is_at_risk,
           coalesce(c.is_live, false) as is_counted
    from (select k.* from known k where k.at = p_from) o
    full join (select k.* from known k where k.at = p_to) c on c.id = o.id and c.currency = o.currency
  ), sided as materialized (
    -- A subscription that is live in one currency is not lost in another, nor new there.
    select b.id, b.currency, b.opening, b.closing, b.created_at, b.discount, b.was_at_risk, b.is_at_risk, b.is_counted,
           bool_or(b.was_live) over by_id as was_live, bool_or(b.is_live) over by_id as is_live
    from both_ends b window by_id as (partition by b.id)
  ), last_charge as (
    select distinct on (o.subscription_id) o.subscription_id as id, o.status
    from reports.orders(p_as_of) o
    where o.created_at < p_to
      and o.subscription_id in (select b.id from sided b where b.was_live and not b.is_live)
    order by o.subscription_id, o.created_at desc, o.id collate "C" desc
  ), moved as (
    select b.*, l.status is not distinct from 'failed' as is_unpaid
    from sided b left join last_charge l on l.id = b.id
  )
  select b.currency, sum(b.opening)::bigint,
         coalesce(sum(b.closing) filter (where not b.was_live and b.created_at >= p_from), 0)::bigint,
         coalesce(sum(b.closing - b.opening) filter (where b.was_live and b.closing > b.opening), 0)::bigint,
         coalesce(sum(b.opening - b.closing) filter (where b.is_live and b.closing < b.opening), 0)::bigint,
         coalesce(sum(b.opening) filter (where not b.is_live and not b.is_unpaid), 0)::bigint,
         coalesce(sum(b.opening) filter (where not b.is_live and b.is_unpaid), 0)::bigint,
         coalesce(sum(b.closing) filter (where not b.was_live and b.created_at < p_from), 0)::bigint,
         sum(b.closing)::bigint,
         coalesce(sum(b.opening) filter (where b.was_at_risk), 0)::bigint,
         coalesce(sum(b.closing) filter (where b.is_at_risk), 0)::bigint,
         sum(b.discount)::bigint, count(*) filter (where b.is_counted)
  from moved b group by b.currency
$$;
