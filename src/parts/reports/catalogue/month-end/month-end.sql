-- The balance is cumulative over all time and gross of fees and payouts, which the service does not report: payouts
-- never reduce it.
create or replace function reports.month_end(p_from timestamptz, p_to timestamptz, p_zone text,
                                  p_as_of timestamptz default null)
returns table (month date, currency text, cumulative_gross_opening bigint, sales bigint, refunds bigint,
               chargebacks bigint, reversals bigint, corrections bigint, cumulative_gross_closing bigint,
               unsettled_opening bigint, unsettled_closing bigint)
language sql stable parallel safe as $$
  with bounds as (
    select c.month, row_number() over (order by c.month)::integer as place,
           greatest(p_from, reports.day_start(c.month, p_zone)) as from_at,
           least(p_to, reports.day_start((c.month + interval '1 month')::date, p_zone)) as to_at
    from generate_series(date_trunc('month', p_from at time zone p_zone),
                         (p_to - interval '1 microsecond') at time zone p_zone, interval '1 month') as g(at)
    cross join lateral (select g.at::date as month) c
  ), summed as (
    -- Movements booked before the period have place 0.
    select width_bucket(b.booked_at, (select array_agg(n.from_at order by n.from_at) from bounds n)) as place,
           b.currency, sum(b.amount) as moved,
           sum(b.amount) filter (where b.kind = 'sale' and not b.is_late) as sales,
           -sum(b.amount) filter (where b.kind = 'refund' and not b.is_late) as refunds,
           -sum(b.amount) filter (where b.kind = 'chargeback' and not b.is_late) as chargebacks,
           sum(b.amount) filter (where b.kind = 'reversal' and not b.is_late) as reversals,
           sum(b.amount) filter (where b.is_late) as corrections
    from reports.booked_movements(p_as_of) b where b.booked_at < p_to
    group by 1, 2
  ), span as materialized (
    select s.* from reports.settlement_spans(
      (select array_agg(b.from_at order by b.from_at) || max(b.to_at) from bounds b), p_as_of) s
  ), unsettled as (
    select t.at, s.currency, sum(s.amount) as amount
    from (select b.from_at as at from bounds b union select b.to_at from bounds b) t
    join span s on s.paid_at < t.at and (s.ended_at is null or s.ended_at >= t.at)
    group by t.at, s.currency
  ), rolled as (
    select c.place, k.currency, s.sales, s.refunds, s.chargebacks, s.reversals, s.corrections,
           coalesce(s.moved, 0) as moved,
           sum(coalesce(s.moved, 0)) over (partition by k.currency order by c.place) as closing
    from (select 0 as place union all select b.place from bounds b) c
    cross join (select distinct currency from summed) k
    left join summed s on s.currency = k.currency and s.place = c.place
  )
  select b.month, r.currency, (r.closing - r.moved)::bigint, coalesce(r.sales, 0)::bigint,
         coalesce(r.refunds, 0)::bigint, coalesce(r.chargebacks, 0)::bigint, coalesce(r.reversals, 0)::bigint,
         coalesce(r.corrections, 0)::bigint, r.closing::bigint, coalesce(o.amount, 0)::bigint,
         coalesce(e.amount, 0)::bigint
  from rolled r
  join bounds b on b.place = r.place
  left join unsettled o on o.at = b.from_at and o.currency = r.currency
  left join unsettled e on e.at = b.to_at and e.currency = r.currency
$$;

create or replace function reports.month_end_unknown(p_from timestamptz, p_to timestamptz, p_zone text,
                                                    p_as_of timestamptz default null)
returns table (what text, n bigint)
language sql stable parallel safe as $$
  -- Balances contain all earlier movements.
  select u.what, u.n from reports.unknown_movements('-infinity', p_to, p_as_of) u
$$;
