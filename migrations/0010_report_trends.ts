import type { Knex } from "knex";

/** The reports on dunning, recurring revenue and the card networks' programmes, and the journal. */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    create table reports.network_thresholds (
      brand text not null,
      programme text not null,
      valid_from date not null,
      valid_until date,
      -- Both must be reached.
      min_disputes bigint not null,
      min_percent numeric not null,
      -- Whose sales the disputes of a month are divided by.
      basis text not null check (basis in ('same_month', 'previous_month')),
      primary key (brand, programme, valid_from)
    );
    insert into reports.network_thresholds values
      ('visa', 'VAMP', '2026-04-01', null, 1500, 1.5, 'same_month'),
      ('mastercard', 'ECM', '2019-10-01', null, 100, 1.5, 'previous_month'),
      ('mastercard', 'HECM', '2019-10-01', null, 300, 3, 'previous_month');

    -- A lower bound: fraud reports, which some programmes add, are not in the service.
    create function reports.network_monitor(p_from timestamptz, p_to timestamptz, p_zone text,
                                            p_as_of timestamptz default null)
    returns table (month date, brand text, programme text, settled bigint, disputes bigint, ratio_percent numeric,
                   threshold_percent numeric, threshold_disputes bigint, headroom bigint, outcome text)
    language sql stable parallel safe as $$
      with counted as (
        select date_trunc('month', m.at at time zone p_zone)::date as month, lower(coalesce(o.card_brand, 'unknown')) as brand,
               count(*) filter (where m.kind = 'sale') as settled, count(*) filter (where m.kind = 'chargeback') as disputes
        from reports.movements(p_as_of) m left join reports.orders(p_as_of) o on o.id = m.order_id
        where m.kind in ('sale', 'chargeback') and m.at < p_to
          and m.at >= (date_trunc('month', p_from at time zone p_zone) - interval '1 month') at time zone p_zone
        group by 1, 2
      ), months as (
        select generate_series(date_trunc('month', p_from at time zone p_zone),
                 (p_to at time zone p_zone) - interval '1 microsecond', interval '1 month')::date as month
      )
      select m.month, b.brand, t.programme, coalesce(r.settled, 0), coalesce(c.disputes, 0),
             round(100.0 * coalesce(c.disputes, 0) / nullif(r.settled, 0), 2), t.min_percent, t.min_disputes,
             l.disputes - coalesce(c.disputes, 0),
             case when t.programme is null then 'no programme' when coalesce(c.disputes, 0) >= l.disputes then 'over'
                  when coalesce(c.disputes, 0) >= 0.8 * l.disputes then 'near' else 'below' end
      from months m cross join (select distinct brand from counted) b
      left join reports.network_thresholds t on t.brand = b.brand and t.valid_from <= m.month
        and (t.valid_until is null or t.valid_until > m.month)
      left join counted c on c.brand = b.brand and c.month = m.month
      left join counted r on r.brand = b.brand and r.month = case when t.basis = 'previous_month'
        then (m.month - interval '1 month')::date else m.month end
      cross join lateral (
        select greatest(t.min_disputes, ceil(t.min_percent * coalesce(r.settled, 0) / 100)::bigint) as disputes
      ) l
    $$;

    -- Renewals whose charge was declined, by the week of the first decline.
    create function reports.dunning_funnel(p_from timestamptz, p_to timestamptz, p_zone text,
                                           p_as_of timestamptz default null)
    returns table (week date, currency text, entered bigint, entered_amount bigint, recovered_at_2 bigint,
                   recovered_at_3 bigint, recovered_at_4 bigint, recovered_later bigint, recovered bigint,
                   recovered_amount bigint, lost bigint, lost_amount bigint, in_progress bigint,
                   in_progress_amount bigint, recovery_percent numeric, median_days numeric)
    language sql stable parallel safe as $$
      with renewal as (
        select o.id, o.currency, o.total, o.status, s.status as subscription_status
        from reports.orders(p_as_of) o
        left join reports.subscription_states(p_as_of) s on s.id = o.subscription_id and s.is_last
        where o.subscription_id is not null and o.subscription_cycle > 1
      ), attempt as (
        select r.*, t.status as outcome, t.created_at,
               row_number() over (partition by t.order_id order by t.created_at, t.id collate "C") as nth
        from reports.transactions(p_as_of) t join renewal r on r.id = t.order_id where t.type = 'sale'
      ), tried as (
        select a.currency, a.total, a.status, a.subscription_status,
               min(a.created_at) filter (where a.outcome = 'failed') as declined_at,
               min(a.nth) filter (where a.outcome <> 'failed') as nth,
               min(a.created_at) filter (where a.outcome <> 'failed') as recovered_at
        from attempt a group by a.id, a.currency, a.total, a.status, a.subscription_status
      ), entered as (
        select date_trunc('week', t.declined_at at time zone p_zone)::date as week, t.currency, t.total, t.nth,
               extract(epoch from t.recovered_at - t.declined_at) / 86400 as days,
               case when t.status not in ('failed', 'pending', 'voided') then 'recovered'
                    when t.subscription_status in ('active', 'past_due', 'paused') then 'in progress' else 'lost' end as state
        from tried t where t.declined_at >= p_from and t.declined_at < p_to
      )
      select e.week, e.currency, count(*), sum(e.total)::bigint,
             count(*) filter (where e.state = 'recovered' and e.nth = 2),
             count(*) filter (where e.state = 'recovered' and e.nth = 3),
             count(*) filter (where e.state = 'recovered' and e.nth = 4),
             count(*) filter (where e.state = 'recovered' and (e.nth is null or e.nth not between 2 and 4)),
             count(*) filter (where e.state = 'recovered'),
             coalesce(sum(e.total) filter (where e.state = 'recovered'), 0)::bigint,
             count(*) filter (where e.state = 'lost'), coalesce(sum(e.total) filter (where e.state = 'lost'), 0)::bigint,
             count(*) filter (where e.state = 'in progress'),
             coalesce(sum(e.total) filter (where e.state = 'in progress'), 0)::bigint,
             round(100.0 * count(*) filter (where e.state = 'recovered') / count(*), 2),
             round((percentile_cont(0.5) within group (order by e.days) filter (where e.state = 'recovered'))::numeric, 1)
      from entered e group by e.week, e.currency
    $$;

    -- A month is a twelfth of 365.25 days. Active and past due subscriptions count.
    create function reports.monthly_amount(p_amount bigint, p_interval text, p_count bigint) returns bigint
    language sql immutable parallel safe as $$
      select round(case p_interval when 'month' then p_amount::numeric / greatest(p_count, 1)
                   when 'day' then p_amount * 365.25 / 12 / greatest(p_count, 1) else p_amount end)::bigint
    $$;

    -- The state at a time is the last one known from before. Where none is (the first fill knows present states only), it
    -- is taken from the first known one.
    create function reports.mrr_at(p_at timestamptz, p_as_of timestamptz default null)
    returns table (id text, currency text, amount bigint, created_at timestamptz, last_live_status text)
    language sql stable parallel safe as $$
      select n.id, n.currency,
             case when n.is_live then reports.monthly_amount(n.amount, n.cycle_interval, n.interval_count) else 0 end,
             n.created_at, n.last_live_status
      from (
        select distinct on (s.id) s.id, s.currency, s.amount, s.cycle_interval, s.interval_count, s.created_at,
               case when s.changed_at < p_at then s.status in ('active', 'past_due')
                    else s.status in ('active', 'past_due', 'paused', 'completed') or s.canceled_at >= p_at end as is_live,
               case when s.changed_at < p_at then s.live[array_length(s.live, 1)] end as last_live_status
        from (
          select t.*, array_agg(t.status) filter (where t.status in ('active', 'past_due'))
                        over (partition by t.id order by t.nth) as live
          from reports.subscription_states(p_as_of) t where t.created_at < p_at
        ) s
        order by s.id, s.changed_at < p_at desc, case when s.changed_at < p_at then s.nth else -s.nth end desc
      ) n
    $$;

    create function reports.mrr(p_from timestamptz, p_to timestamptz, p_zone text, p_as_of timestamptz default null)
    returns table (currency text, opening bigint, new_mrr bigint, expansion bigint, contraction bigint,
                   churn_voluntary bigint, churn_involuntary bigint, reactivation bigint, closing bigint,
                   subscriptions bigint)
    language sql stable parallel safe as $$
      with both_ends as (
        select coalesce(o.currency, c.currency) as currency, coalesce(o.amount, 0) as opening,
               coalesce(c.amount, 0) as closing, coalesce(c.created_at, o.created_at) as created_at, c.last_live_status
        from reports.mrr_at(p_from, p_as_of) o
        full join reports.mrr_at(p_to, p_as_of) c on c.id = o.id and c.currency = o.currency
      )
      select b.currency, sum(b.opening)::bigint,
             coalesce(sum(b.closing) filter (where b.opening = 0 and b.created_at >= p_from), 0)::bigint,
             coalesce(sum(b.closing - b.opening) filter (where b.opening > 0 and b.closing > b.opening), 0)::bigint,
             coalesce(sum(b.opening - b.closing) filter (where b.closing > 0 and b.closing < b.opening), 0)::bigint,
             coalesce(sum(b.opening) filter (where b.closing = 0 and b.last_live_status is distinct from 'past_due'), 0)::bigint,
             coalesce(sum(b.opening) filter (where b.closing = 0 and b.last_live_status = 'past_due'), 0)::bigint,
             coalesce(sum(b.closing) filter (where b.opening = 0 and b.created_at < p_from), 0)::bigint,
             sum(b.closing)::bigint, count(*) filter (where b.closing > 0)
      from both_ends b group by b.currency
    $$;

    create function reports.default_accounts() returns jsonb
    language sql immutable parallel safe as $$
      select '{"clearing": "1200", "sales": "4000", "refunds": "4100", "chargebacks": "6800"}'::jsonb
    $$;

    -- One entry a currency and day, its number the same in every repeat. Balanced, since every movement is booked on two
    -- sides at once. What is learned after a close has a line for each day it belongs to.
    create function reports.journal(p_from timestamptz, p_to timestamptz, p_zone text, p_as_of timestamptz default null,
                                    p_accounts jsonb default reports.default_accounts())
    returns table (number text, date date, account text, description text, debit bigint, credit bigint, currency text,
                   line bigint)
    language sql stable parallel safe as $$
      with posted as (
        select (b.booked_at at time zone p_zone)::date as day, b.currency, b.kind,
               case when b.is_late then (b.at at time zone p_zone)::date end as happened_on, b.amount < 0 as is_out,
               count(*) as n, abs(sum(b.amount))::bigint as amount
        from reports.booked_movements(p_as_of) b where b.booked_at >= p_from and b.booked_at < p_to and b.amount <> 0
        group by 1, 2, 3, 4, 5
      ), sided as (
        select p.*, k.place, k.label, side.is_debit,
               case when side.is_clearing then p_accounts->>'clearing' else p_accounts->>k.account end as account
        from posted p
        join (values ('sale', 1, 'sales', 'sales'), ('refund', 2, 'refunds', 'refunds'),
                     ('chargeback', 3, 'chargebacks', 'chargebacks'),
                     ('reversal', 4, 'chargebacks dismissed', 'chargebacks')) as k(kind, place, label, account) using (kind)
        cross join lateral (values (true, not p.is_out), (false, p.is_out)) as side(is_clearing, is_debit)
      )
      select 'TH-' || to_char(s.day, 'YYYYMMDD') || '-' || upper(s.currency), s.day, s.account,
             s.n || ' ' || s.label || coalesce(' of ' || to_char(s.happened_on, 'YYYY-MM-DD') || ', learned after its month was closed', ''),
             case when s.is_debit then s.amount else 0 end, case when s.is_debit then 0 else s.amount end, s.currency,
             row_number() over (partition by s.day, s.currency
               order by s.happened_on nulls first, s.place, s.is_out, s.is_debit desc)
      from sided s
    $$;
  `);
}

export async function down(db: Knex): Promise<void> {
  await db.raw(`
    drop function reports.journal, reports.default_accounts, reports.mrr, reports.mrr_at, reports.monthly_amount,
                  reports.dunning_funnel, reports.network_monitor;
    drop table reports.network_thresholds`);
}
