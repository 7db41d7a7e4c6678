-- Every known state of every subscription, numbered by the service's time (`nth`). `net_amount` is the plan's amount
-- less the discount on the billing cycle that the state shows.
create or replace function reports.subscription_states(p_as_of timestamptz default null)
returns table (id text, changed_at timestamptz, nth bigint, is_last boolean, status text, currency text,
               amount bigint, net_amount bigint, cycle_interval text, interval_count bigint,
               created_at timestamptz, canceled_at timestamptz)
language sql stable parallel safe as $$
  select v.id, v.source_updated_at,
         row_number() over (partition by v.id order by v.source_updated_at, v.observed_at nulls first,
                            reports.status_rank(v.data->>'status'), v.content_hash),
         row_number() over (partition by v.id order by v.source_updated_at desc, v.observed_at desc nulls last,
                            reports.status_rank(v.data->>'status') desc, v.content_hash desc) = 1,
         v.data->>'status', coalesce(v.data->'plan'->>'currency', 'xxx'), p.amount,
         p.amount - reports.discount(v.data->'applied_coupon', p.amount,
                                     coalesce(reports.whole(v.data->'current_billing_cycle'), 1)),
         v.data->'billing_cycle'->>'interval', reports.whole(v.data->'billing_cycle'->'interval_count'),
         reports.moment(v.data->'created_at'), reports.moment(v.data->'canceled_at')
  from mirror.versions v
  cross join lateral (select coalesce(reports.whole(v.data->'plan'->'amount'), 0) as amount) p
  where v.resource = 'subscription' and (p_as_of is null or v.recorded_at <= p_as_of)
$$;
