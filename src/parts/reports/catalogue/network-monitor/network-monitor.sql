-- Whether disputes are near a threshold. The alert `chargeback_ratio` uses it as well, with the share from its
-- settings.
create or replace function reports.is_near(p_disputes bigint, p_threshold bigint, p_share numeric default 0.8)
returns boolean language sql immutable parallel safe as $$
  select p_disputes >= p_share * p_threshold
$$;

-- The disputes are a lower bound: some programmes add fraud reports, which the service does not have. A programme's
-- minimum amount is in one currency: disputes in any other currency are taken to reach it.
create or replace function reports.network_monitor(p_from timestamptz, p_to timestamptz, p_zone text,
                                        p_as_of timestamptz default null, p_region text default 'global')
returns table (month date, brand text, programme text, sales bigint, disputes bigint, ratio_percent numeric,
               threshold_percent numeric, threshold_disputes bigint, headroom bigint, outcome text)
language sql stable parallel safe as $$
  with bounds as (
    -- The month before, too: some ratios are to its sales.
    select c.month, row_number() over (order by c.month)::integer as place, reports.day_start(c.month, p_zone) as from_at
    from generate_series(date_trunc('month', p_from at time zone p_zone) - interval '1 month',
                         (p_to - interval '1 microsecond') at time zone p_zone, interval '1 month') as g(at)
    cross join lateral (select g.at::date as month) c
  ), moved as (
    select width_bucket(m.at, (select array_agg(b.from_at order by b.from_at) from bounds b)) as place,
           lower(coalesce(o.card_brand, 'unknown')) as brand, m.currency, count(*) filter (where m.kind = 'sale') as sales,
           count(*) filter (where m.kind = 'chargeback') as disputes,
           coalesce(-sum(m.amount) filter (where m.kind = 'chargeback'), 0) as disputed
    from reports.movements(p_as_of) m left join reports.orders(p_as_of) o on o.id = m.order_id
    where m.kind in ('sale', 'chargeback') and m.at < p_to
      and m.at >= reports.day_start((date_trunc('month', p_from at time zone p_zone) - interval '1 month')::date, p_zone)
    group by 1, 2, 3
  ), counted as (
    select m.place, m.brand, sum(m.sales)::bigint as sales, sum(m.disputes)::bigint as disputes,
           jsonb_object_agg(m.currency, m.disputed) filter (where m.disputed > 0) as disputed
    from moved m group by m.place, m.brand
  )
  select m.month, b.brand, t.programme, coalesce(r.sales, 0), coalesce(c.disputes, 0),
         round(100.0 * coalesce(c.disputes, 0) / nullif(r.sales, 0), 2), t.min_percent, t.min_disputes,
         l.disputes - coalesce(c.disputes, 0),
         case when t.programme is null then 'no programme'
              when coalesce(c.disputes, 0) >= l.disputes and l.is_amount_reached then 'over'
              when reports.is_near(coalesce(c.disputes, 0), l.disputes) then 'near' else 'below' end
  from bounds m cross join (select distinct brand from counted) b
  left join reports.network_thresholds t on t.brand = b.brand and t.region in ('any', p_region)
    and t.valid_from <= m.month and (t.valid_until is null or t.valid_until > m.month)
  left join counted c on c.brand = b.brand and c.place = m.place
  left join counted r on r.brand = b.brand
    and r.place = case when t.basis = 'previous_month' then m.place - 1 else m.place end
  cross join lateral (
    select greatest(t.min_disputes, ceil(t.min_percent * coalesce(r.sales, 0) / 100)::bigint) as disputes,
           t.min_amount is null or coalesce((c.disputed->>t.min_amount_currency)::numeric, 0) >= t.min_amount
             or coalesce(c.disputed - t.min_amount_currency <> '{}', false) as is_amount_reached
  ) l
  where m.place > 1
$$;

-- Counted from the month before on, as the ratios are.
create or replace function reports.network_monitor_unknown(p_from timestamptz, p_to timestamptz, p_zone text,
                                                           p_as_of timestamptz default null)
returns table (what text, n bigint)
language sql stable parallel safe as $$
  with since as (
    select reports.day_start((date_trunc('month', p_from at time zone p_zone) - interval '1 month')::date, p_zone) as at
  )
  select u.what, u.n from since cross join lateral reports.unknown_movements(since.at, p_to, p_as_of) u
  where u.what in ('chargeback.amount', 'chargeback.currency', 'sale.order') or u.what like 'transaction.%'
$$;
