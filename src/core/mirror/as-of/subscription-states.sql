-- The nearest state of a subscription in which a field is known: the last one up to p_at, else the first one after it.
-- Few states lack one, so it is a look-up of its own.
create or replace function reports.last_known(p_subscription text, p_field text, p_at timestamptz,
                                              p_as_of timestamptz default null)
returns jsonb language plpgsql stable parallel safe cost 1 as $$
begin
    return (
      select v.data->p_field from mirror.versions v
      where v.resource = 'subscription' and v.id = p_subscription and (p_as_of is null or v.recorded_at <= p_as_of)
        and reports.is_recurring_known(p_field, v.data->p_field)
      order by v.source_updated_at > p_at, abs(extract(epoch from v.source_updated_at - p_at)),
               v.observed_at desc nulls last, v.content_hash desc
      limit 1);
end
$$;

-- The same of a plan together with its interval: a new amount for an interval that is not understood is no amount for
-- the one before.
create or replace function reports.last_priced(p_subscription text, p_at timestamptz, p_as_of timestamptz default null)
returns jsonb language plpgsql stable parallel safe cost 1 as $$
begin
    return (
      select v.data from mirror.versions v
      where v.resource = 'subscription' and v.id = p_subscription and (p_as_of is null or v.recorded_at <= p_as_of)
        and reports.is_recurring_known('plan', v.data->'plan')
        and reports.is_recurring_known('billing_cycle', v.data->'billing_cycle')
      order by v.source_updated_at > p_at, abs(extract(epoch from v.source_updated_at - p_at)),
               v.observed_at desc nulls last, v.content_hash desc
      limit 1);
end
$$;

-- Every known state of every subscription, numbered by the service's time (`nth`). `net_amount` is the plan's amount
-- less the discount on the billing cycle that the state shows. Of a plan, an interval or a cycle that the state does
-- not show, the one last known counts (`is_assumed`), and so of an interval that is not understood, with its plan.
-- Amounts are null where no state shows a plan. A plan can be edited at the service while its subscriptions keep their
-- time: such a state counts from the read that first showed it (`changed_at`).
create or replace function reports.subscription_states(p_as_of timestamptz default null)
returns table (id text, changed_at timestamptz, nth bigint, is_last boolean, status text, currency text,
               amount bigint, net_amount bigint, cycle_interval text, interval_count bigint,
               created_at timestamptz, canceled_at timestamptz, is_assumed boolean)
language sql stable parallel safe as $$
  select v.id,
         case when v.observed_at > v.source_updated_at and lag(v.source_updated_at) over known = v.source_updated_at
                and (lag(v.data) over known) - 'plan' = v.data - 'plan' then v.observed_at
              else v.source_updated_at end,
         row_number() over known,
         row_number() over (partition by v.id order by v.source_updated_at desc, v.observed_at desc nulls last,
                            reports.status_rank(v.data->>'status') desc, v.content_hash desc) = 1,
         v.data->>'status', coalesce(reports.one_spelling(k.plan->>'currency'), 'xxx'), p.amount,
         p.amount - reports.discount(v.data->'applied_coupon', p.amount, coalesce(reports.whole(k.cycle), 1)),
         k.billing->>'interval', reports.whole(k.billing->'interval_count'),
         reports.moment(v.data->'created_at'), reports.moment(v.data->'canceled_at'),
         not (h.has_plan and h.has_billing and h.has_cycle)
  from mirror.versions v
  cross join lateral (
    select reports.is_recurring_known('plan', v.data->'plan') as has_plan,
           reports.is_recurring_known('billing_cycle', v.data->'billing_cycle') as has_billing,
           reports.is_recurring_known('current_billing_cycle', v.data->'current_billing_cycle')
             or coalesce(v.data->'applied_coupon'->>'duration', 'forever') = 'forever' as has_cycle,
           coalesce(v.data->'billing_cycle'->>'interval' not in ('day', 'month'), false) as is_foreign
    offset 0
  ) h
  cross join lateral (
    select case when h.is_foreign then reports.last_priced(v.id, v.source_updated_at, p_as_of) end as priced
    offset 0
  ) l
  cross join lateral (
    select case when h.is_foreign then coalesce(l.priced, v.data)->'plan' when h.has_plan then v.data->'plan'
                else reports.last_known(v.id, 'plan', v.source_updated_at, p_as_of) end as plan,
           case when h.is_foreign then coalesce(l.priced, v.data)->'billing_cycle' when h.has_billing then v.data->'billing_cycle'
                else reports.last_known(v.id, 'billing_cycle', v.source_updated_at, p_as_of) end as billing,
           case when h.has_cycle then v.data->'current_billing_cycle'
                else reports.last_known(v.id, 'current_billing_cycle', v.source_updated_at, p_as_of) end as cycle
    offset 0
  ) k
  cross join lateral (select reports.whole(k.plan->'amount') as amount) p
  where v.resource = 'subscription' and (p_as_of is null or v.recorded_at <= p_as_of)
  window known as (partition by v.id order by v.source_updated_at, v.observed_at nulls first,
                   reports.status_rank(v.data->>'status'), v.content_hash)
$$;
