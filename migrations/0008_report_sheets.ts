import type { Knex } from "knex";

/**
 * The reports on money that moved. All have the same parameters: `[p_from, p_to)` in UTC, the zone (IANA) that cuts
 * days and months, and as of when. No row ever adds two currencies.
 */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    create function reports.month_end(p_from timestamptz, p_to timestamptz, p_zone text, p_as_of timestamptz default null)
    returns table (month date, currency text, opening bigint, sales bigint, refunds bigint, chargebacks bigint,
                   reversals bigint, corrections bigint, closing bigint)
    language sql stable parallel safe as $$
      with summed as (
        select case when b.booked_at >= p_from then date_trunc('month', b.booked_at at time zone p_zone)::date end as month,
               b.currency, sum(b.amount) as moved,
               sum(b.amount) filter (where b.kind = 'sale' and not b.is_late) as sales,
               -sum(b.amount) filter (where b.kind = 'refund' and not b.is_late) as refunds,
               -sum(b.amount) filter (where b.kind = 'chargeback' and not b.is_late) as chargebacks,
               sum(b.amount) filter (where b.kind = 'reversal' and not b.is_late) as reversals,
               sum(b.amount) filter (where b.is_late) as corrections
        from reports.booked_movements(p_as_of) b where b.booked_at < p_to
        group by 1, 2
      ), calendar as (
        select null::date as month union all
        select generate_series(date_trunc('month', p_from at time zone p_zone),
                               (p_to at time zone p_zone) - interval '1 microsecond', interval '1 month')::date
      ), rolled as (
        select c.month, k.currency, s.sales, s.refunds, s.chargebacks, s.reversals, s.corrections,
               coalesce(s.moved, 0) as moved,
               sum(coalesce(s.moved, 0)) over (partition by k.currency order by c.month nulls first) as closing
        from calendar c cross join (select distinct currency from summed) k
        left join summed s on s.currency = k.currency and s.month is not distinct from c.month
      )
      select r.month, r.currency, (r.closing - r.moved)::bigint, coalesce(r.sales, 0)::bigint,
             coalesce(r.refunds, 0)::bigint, coalesce(r.chargebacks, 0)::bigint, coalesce(r.reversals, 0)::bigint,
             coalesce(r.corrections, 0)::bigint, r.closing::bigint
      from rolled r where r.month is not null
    $$;

    -- Booked in the period although it happened in a month that was closed before.
    create function reports.changes_after_close(p_from timestamptz, p_to timestamptz, p_zone text,
                                                p_as_of timestamptz default null)
    returns table (movement text, kind text, order_id text, happened_at timestamptz, happened_on date,
                   booked_on date, currency text, amount bigint)
    language sql stable parallel safe as $$
      select b.movement, b.kind, b.order_id, b.at, (b.at at time zone p_zone)::date,
             (b.booked_at at time zone p_zone)::date, b.currency, b.amount
      from reports.booked_movements(p_as_of) b where b.is_late and b.booked_at >= p_from and b.booked_at < p_to
    $$;

    create function reports.refunds(p_from timestamptz, p_to timestamptz, p_zone text, p_as_of timestamptz default null)
    returns table (refund text, order_id text, order_number text, customer_id text, sold_on date, refunded_on date,
                   refunded_at timestamptz, currency text, amount bigint, cumulative bigint, extent text, status text,
                   days integer)
    language sql stable parallel safe as $$
      with refund as (
        select t.*, sum(case when t.status = 'succeeded' then abs(t.amount) else 0 end)
                 over (partition by t.order_id order by t.created_at, t.id collate "C") as given_back
        from reports.transactions(p_as_of) t where t.type = 'refund' and t.created_at < p_to
      )
      select r.id, r.order_id, o.order_number, coalesce(o.customer_id, r.customer_id),
             (o.created_at at time zone p_zone)::date, (r.created_at at time zone p_zone)::date, r.created_at, r.currency,
             abs(r.amount), r.given_back::bigint,
             case when o.id is null then 'unknown' when r.status <> 'succeeded' then 'none'
                  when r.given_back >= o.total then 'full' else 'partial' end,
             r.status, (r.created_at at time zone p_zone)::date - (o.created_at at time zone p_zone)::date
      from refund r left join reports.orders(p_as_of) o on o.id = r.order_id
      where r.created_at >= p_from
    $$;

    -- What was open at any time of the period.
    create function reports.chargeback_list(p_from timestamptz, p_to timestamptz, p_zone text,
                                            p_as_of timestamptz default null)
    returns table (chargeback text, order_id text, order_number text, brand text, sold_on date, noticed_on date,
                   noticed_at timestamptz, state text, resolved_on date, currency text, amount bigint,
                   refunded_before bigint)
    language sql stable parallel safe as $$
      with listed as materialized (
        select c.* from reports.chargebacks(p_as_of) c
        where c.opened_at < p_to and (c.resolved_at is null or c.resolved_at >= p_from)
      ), before as (
        select l.key, sum(abs(t.amount))::bigint as amount
        from listed l join reports.transactions(p_as_of) t
          on t.order_id = l.order_id and t.type = 'refund' and t.status = 'succeeded' and t.created_at < l.opened_at
        group by l.key
      )
      select c.key, c.order_id, o.order_number, coalesce(o.card_brand, 'unknown'), (o.created_at at time zone p_zone)::date,
             (c.opened_at at time zone p_zone)::date, c.opened_at,
             case when c.resolved_at >= p_to then 'opened' else c.state end,
             case when c.resolved_at < p_to then (c.resolved_at at time zone p_zone)::date end, c.currency, c.amount,
             coalesce(r.amount, 0)
      from listed c
      left join reports.orders(p_as_of) o on o.id = c.order_id
      left join before r on r.key = c.key
    $$;

    create function reports.chargeback_inventory(p_from timestamptz, p_to timestamptz, p_zone text,
                                                 p_as_of timestamptz default null)
    returns table (currency text, opening_count bigint, opening bigint, received_count bigint, received bigint,
                   accepted_count bigint, accepted bigint, dismissed_count bigint, dismissed bigint,
                   closing_count bigint, closing bigint)
    language sql stable parallel safe as $$
      with side as (
        select c.*, c.opened_at < p_from as was_before,
               c.opened_at >= p_from and c.opened_at < p_to as is_received,
               c.resolved_at < p_from as was_settled, c.resolved_at >= p_from and c.resolved_at < p_to as is_settled
        from reports.chargebacks(p_as_of) c where c.opened_at < p_to
      )
      select s.currency, count(*) filter (where opening), coalesce(sum(s.amount) filter (where opening), 0)::bigint,
             count(*) filter (where s.is_received), coalesce(sum(s.amount) filter (where s.is_received), 0)::bigint,
             count(*) filter (where accepted), coalesce(sum(s.amount) filter (where accepted), 0)::bigint,
             count(*) filter (where dismissed), coalesce(sum(s.amount) filter (where dismissed), 0)::bigint,
             count(*) filter (where closing), coalesce(sum(s.amount) filter (where closing), 0)::bigint
      from side s
      cross join lateral (
        select s.was_before and s.was_settled is not true as opening,
               s.is_settled is true and s.state = 'accepted' as accepted,
               s.is_settled is true and s.state = 'dismissed' as dismissed,
               coalesce(s.resolved_at >= p_to, true) as closing
      ) f
      group by s.currency
    $$;

    create function reports.declines(p_from timestamptz, p_to timestamptz, p_zone text, p_as_of timestamptz default null)
    returns table (currency text, failure_code text, code_group text, brand text, charge text, declines bigint,
                   amount bigint, share_percent numeric, recovered_percent numeric)
    language sql stable parallel safe as $$
      with attempt as (
        select t.currency, coalesce(t.failure_code, o.failure_code, 'unknown') as code,
               coalesce(o.card_brand, 'unknown') as brand,
               case when o.subscription_id is null then 'one-time'
                    when o.subscription_cycle > 1 then 'renewal' else 'first' end as charge,
               abs(t.amount) as amount,
               o.status not in ('failed', 'pending', 'voided') as is_recovered
        from reports.transactions(p_as_of) t left join reports.orders(p_as_of) o on o.id = t.order_id
        where t.type = 'sale' and t.status = 'failed' and t.created_at >= p_from and t.created_at < p_to
      )
      select a.currency, a.code, coalesce(g.code_group, 'other'), a.brand, a.charge, count(*), sum(a.amount)::bigint,
             round(100.0 * count(*) / sum(count(*)) over (partition by a.currency), 2),
             round(100.0 * count(*) filter (where a.is_recovered) / count(*), 2)
      from attempt a left join reports.decline_groups g on g.code = a.code
      group by a.currency, a.code, g.code_group, a.brand, a.charge
    $$;

    create function reports.order_retries(p_as_of timestamptz default null)
    returns table (id text, next_retry_at timestamptz)
    language sql stable parallel safe as $$
      select o.id, o.next_retry_at from mirror.orders o
      where o.next_retry_at is not null and (p_as_of is null or not exists (
        select from mirror.versions c where c.resource = 'order.dunning' and c.id = o.id and c.recorded_at > p_as_of))
      union all
      select k.id, (k.data->>'next_retry_at')::timestamptz
      from (
        select distinct on (v.id) v.id, v.data from mirror.versions v
        where p_as_of is not null and v.resource = 'order.dunning' and v.recorded_at <= p_as_of
          and v.id in (
            select c.id from mirror.versions c where c.resource = 'order.dunning' and c.recorded_at > p_as_of)
        order by v.id, v.source_updated_at desc, reports.whole(v.data->'attempt_count') desc nulls last,
                 v.content_hash desc
      ) k
    $$;

    -- Age at the end of the period, in days of the zone. What is past due is so as of p_as_of.
    create function reports.past_due_aging(p_from timestamptz, p_to timestamptz, p_zone text,
                                           p_as_of timestamptz default null)
    returns table (currency text, days_past_due text, orders bigint, amount bigint, next_retry_at timestamptz)
    language sql stable parallel safe as $$
      with due as (
        select o.id, o.currency, o.total, ((p_to at time zone p_zone) - interval '1 microsecond')::date
                 - (o.created_at at time zone p_zone)::date as days
        from reports.orders(p_as_of) o
        join reports.subscription_states(p_as_of) s on s.id = o.subscription_id and s.is_last
        where o.status = 'failed' and o.subscription_cycle > 1 and s.status = 'past_due' and o.created_at < p_to
      )
      select d.currency, case when d.days <= 7 then '0-7' when d.days <= 14 then '8-14' when d.days <= 30 then '15-30'
                              when d.days <= 60 then '31-60' else '61+' end,
             count(*), sum(d.total)::bigint, min(r.next_retry_at)
      from due d left join reports.order_retries(p_as_of) r on r.id = d.id
      group by 1, 2
    $$;
  `);
}

export async function down(db: Knex): Promise<void> {
  await db.raw(`
    drop function reports.past_due_aging, reports.order_retries, reports.declines, reports.chargeback_inventory,
                  reports.chargeback_list, reports.refunds, reports.changes_after_close, reports.month_end`);
}
