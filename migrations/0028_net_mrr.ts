import type { Knex } from "knex";

/**
 * Recurring revenue net of the discounts that run on, what of it is past due apart, and churn that is told involuntary
 * by the renewal that was never paid: a subscription may be past due and canceled between two looks.
 */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    drop function reports.subscription_states, reports.mrr, reports.mrr_at;

    -- A time as the service writes it; null for anything else, which a cast would fail on.
    create function reports.moment(p_value jsonb) returns timestamptz
    language sql stable parallel safe as $$
      select case
        when jsonb_typeof(p_value) <> 'string' or p_value #>> '{}' !~
          '^[12][0-9]{3}-(0[1-9]|1[0-2])-[0-3][0-9]T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]+|)(Z|[+-][01][0-9]:[0-5][0-9])$'
          then null
        when substr(p_value #>> '{}', 9, 2) = '00' or substr(p_value #>> '{}', 9, 2)::integer
          > extract(day from (substr(p_value #>> '{}', 1, 7) || '-01')::date + interval '1 month' - interval '1 day')
          then null
        else (p_value #>> '{}')::timestamptz end
    $$;

    -- What a coupon takes off a cycle's amount: once covers the first cycle, repeating the first n. The percentage is
    -- exact, rounded down, and then capped (spec, POST /coupons/validate). A coupon that cannot be read takes nothing.
    create function reports.discount(p_coupon jsonb, p_amount bigint, p_cycle bigint) returns bigint
    language sql immutable parallel safe as $$
      select case when c.is_covered then least(greatest(coalesce(case
          when jsonb_typeof(p_coupon->'percentage') = 'number' then least(
            floor(p_amount * (p_coupon->>'percentage')::numeric / 100),
            coalesce(reports.whole(p_coupon->'max_discount_amount'), p_amount))
          else reports.whole(p_coupon->'amount') end, 0), 0), p_amount)::bigint else 0 end
      from (select case p_coupon->>'duration'
          when 'forever' then true
          when 'once' then p_cycle <= 1
          when 'repeating' then p_cycle <= reports.whole(p_coupon->'duration_in_cycles')
          else false end as is_covered) c
    $$;

    -- The states of subscriptions in order of time: what changed, and when the service says so. The net amount is that of
    -- the cycle that is under way.
    create function reports.subscription_states(p_as_of timestamptz default null)
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

    -- The state at a time is the last one known from before. Where none is (the first fill knows present states only),
    -- it is taken from the first known one.
    create function reports.mrr_at(p_at timestamptz, p_as_of timestamptz default null)
    returns table (id text, currency text, amount bigint, discount bigint, is_live boolean, is_at_risk boolean,
                   created_at timestamptz)
    language sql stable parallel safe as $$
      select n.id, n.currency, case when n.is_live then m.net else 0 end,
             case when n.is_live then m.gross - m.net else 0 end, n.is_live,
             n.is_live and n.is_past_due, n.created_at
      from (
        select distinct on (s.id) s.id, s.currency, s.amount, s.net_amount, s.cycle_interval, s.interval_count,
               s.created_at, s.changed_at < p_at and s.status = 'past_due' is true as is_past_due,
               coalesce(case when s.changed_at < p_at then s.status in ('active', 'past_due')
                             else s.status in ('active', 'past_due', 'paused', 'completed')
                               or s.canceled_at >= p_at end, false) as is_live
        from reports.subscription_states(p_as_of) s
        where s.created_at < p_at
        order by s.id, s.changed_at < p_at desc, case when s.changed_at < p_at then s.nth else -s.nth end desc
      ) n
      cross join lateral (
        select reports.monthly_amount(n.amount, n.cycle_interval, n.interval_count) as gross,
               reports.monthly_amount(n.net_amount, n.cycle_interval, n.interval_count) as net
      ) m
    $$;

    create function reports.mrr(p_from timestamptz, p_to timestamptz, p_zone text, p_as_of timestamptz default null)
    returns table (currency text, opening bigint, new_mrr bigint, expansion bigint, contraction bigint,
                   churn_voluntary bigint, churn_involuntary bigint, reactivation bigint, closing bigint,
                   at_risk_opening bigint, at_risk_closing bigint, discounts bigint, subscriptions bigint)
    language sql stable parallel safe as $$
      with both_ends as materialized (
        select coalesce(c.id, o.id) as id, coalesce(o.currency, c.currency) as currency,
               coalesce(o.amount, 0) as opening, coalesce(c.amount, 0) as closing,
               coalesce(c.created_at, o.created_at) as created_at, coalesce(c.discount, 0) as discount,
               coalesce(o.is_live, false) as was_live, coalesce(c.is_live, false) as is_live,
               coalesce(o.is_at_risk, false) as was_at_risk, coalesce(c.is_at_risk, false) as is_at_risk
        from reports.mrr_at(p_from, p_as_of) o
        full join reports.mrr_at(p_to, p_as_of) c on c.id = o.id and c.currency = o.currency
      ), last_charge as (
        select distinct on (o.subscription_id) o.subscription_id as id, o.status
        from reports.orders(p_as_of) o
        where o.created_at < p_to
          and o.subscription_id in (select b.id from both_ends b where b.was_live and not b.is_live)
        order by o.subscription_id, o.created_at desc, o.id collate "C" desc
      ), moved as (
        select b.*, l.status is not distinct from 'failed' as is_unpaid
        from both_ends b left join last_charge l on l.id = b.id
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
             sum(b.discount)::bigint, count(*) filter (where b.is_live)
      from moved b group by b.currency
    $$;
  `);
}

export function down(): Promise<void> {
  throw new Error(
    "net recurring revenue cannot be taken out again: restore the database from a backup",
  );
}
