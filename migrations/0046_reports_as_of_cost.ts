import type { Knex } from "knex";

/**
 * What a report as of a time costs: what was touched since is looked up once, and of the few chargebacks among it each
 * order and sale by itself. The daily control reads the ledger of slices once, and not twice a day. A journal's numbers
 * are those of the days of one zone.
 */
export async function up(db: Knex): Promise<void> {
  await journal(db);
  await db.raw(`
    -- As of a time: mirror.chargebacks (0021) over the states recorded by then, for what was touched since. One order
    -- and one transaction after another (collate and limit keep the planner from making all of them): there are few.
    create or replace function reports.chargebacks(p_as_of timestamptz default null)
    returns table (key text, order_id text, transaction_id text, state text, amount bigint, currency text,
                   opened_at timestamptz, resolved_at timestamptz)
    language sql stable parallel safe as $$
      with touched as materialized (
        select t.key from reports.touched(p_as_of) t
      ), showing as materialized (
        select v.id as key, v.id as order_id from mirror.versions v
        where p_as_of is not null and v.recorded_at <= p_as_of and v.resource = 'order'
          and v.data->>'status' like 'chargeback%' and v.id in (select key from touched)
        union
        select coalesce(t.order_id, t.id), t.order_id
        from (
          select distinct m.id from mirror.versions v join mirror.transactions m on m.id = v.id
          where p_as_of is not null and v.recorded_at <= p_as_of and v.resource in ('transaction', 'transaction.inline')
            and v.data->>'status' like 'chargeback%' and coalesce(m.order_id, m.id) in (select key from touched)
        ) shown
        cross join lateral (
          select x.id, x.order_id from reports.transactions(p_as_of) x where x.id collate "C" = shown.id limit 1) t
      )
      select c.key, c.order_id, c.transaction_id, c.state, c.amount, c.currency, c.opened_at, c.resolved_at
      from mirror.chargebacks c
      where p_as_of is null or not exists (select from touched c2 where c2.key = c.key)
      union all
      select k.key, k.order_id, sale.id, known.state, coalesce(sale.amount, o.total), coalesce(sale.currency, o.currency),
             least(ordered.first_at, sale.first_at), case when known.state <> 'opened' then known.ended_at end
      from showing k
      left join lateral (
        select x.status, x.total, x.currency from reports.orders(p_as_of) x where x.id collate "C" = k.order_id limit 1
      ) o on true
      left join lateral (
        select shown.*, (
            select min(v.source_updated_at) from mirror.versions v
            where v.resource = 'order' and v.id = k.order_id and v.source_updated_at > shown.last_at
              and v.recorded_at <= p_as_of and v.data->>'status' not like 'chargeback%') as left_at
        from (
          select min(v.source_updated_at) as first_at, max(v.source_updated_at) as last_at,
                 min(v.source_updated_at) filter (where v.data->>'status' = 'chargeback_accepted') as accepted_at,
                 min(v.source_updated_at) filter (where v.data->>'status' = 'chargeback_dismissed') as dismissed_at,
                 (array_agg(v.data->>'status' order by v.source_updated_at desc,
                            v.data->>'status' collate "C" desc))[1] as last_status
          from mirror.versions v
          where v.resource = 'order' and v.id = k.order_id and v.recorded_at <= p_as_of
            and v.data->>'status' like 'chargeback%'
        ) shown
      ) ordered on true
      left join lateral (
        select t.id, t.amount, t.currency, t.status, shown.*, (
            select min(v.source_updated_at) from mirror.versions v
            where v.resource in ('transaction', 'transaction.inline') and v.id = t.id
              and v.source_updated_at > shown.last_at and v.recorded_at <= p_as_of
              and v.data->>'status' not like 'chargeback%') as left_at
        from mirror.transactions m
        cross join lateral (
          select x.* from reports.transactions(p_as_of) x where x.id collate "C" = m.id limit 1) t
        cross join lateral (
          select min(v.source_updated_at) as first_at, max(v.source_updated_at) as last_at
          from mirror.versions v
          where v.resource in ('transaction', 'transaction.inline') and v.id = t.id and v.recorded_at <= p_as_of
            and v.data->>'status' like 'chargeback%'
        ) shown
        where (m.order_id = k.order_id or m.id = k.key) and coalesce(t.order_id, t.id) = k.key
          and (shown.first_at is not null or (t.type = 'sale' and t.status not in ('failed', 'voided')))
        order by shown.first_at is null, t.created_at, t.id collate "C"
        limit 1
      ) sale on true
      cross join lateral (
        select case
            when o.status = 'chargeback_accepted' then 'accepted'
            when o.status = 'chargeback_dismissed' then 'dismissed'
            when o.status like 'chargeback%' then 'opened'
            when ordered.last_status = 'chargeback_accepted' then 'accepted'
            when ordered.first_at is not null then 'dismissed'
            when sale.status like 'chargeback%' then 'opened'
            else 'dismissed' end as state
      ) now
      cross join lateral (
        select now.state, case
            when now.state = 'opened' then null
            when now.state = 'accepted' then ordered.accepted_at
            when ordered.first_at is not null then coalesce(ordered.dismissed_at, ordered.left_at, ordered.last_at)
            else coalesce(sale.left_at, sale.last_at) end as ended_at
      ) known
    $$;

    -- What cannot be summed at the service is left out on both sides.
    create or replace function reports.daily_control(p_from timestamptz, p_to timestamptz, p_zone text,
                                                     p_as_of timestamptz default null)
    returns table (day date, currency text, type text, status text, service_count bigint, service_sum bigint,
                   mirror_count bigint, mirror_sum bigint, difference_count bigint, difference_sum bigint,
                   coverage_percent numeric, run bigint, outcome text)
    language sql stable parallel safe as $$
      with days as materialized (
        select d.day, tstzrange(reports.day_start(d.day, p_zone), reports.day_start(d.day + 1, p_zone)) as bounds
        from (select generate_series((p_from at time zone p_zone)::date,
                ((p_to - interval '1 microsecond') at time zone p_zone)::date, interval '1 day')::date as day) d
      ), slices as materialized (
        select s.run, s.slice, s.read_at, s.bounds,
               exists (select from reconcile.daily_sums m where m.run = s.run) as is_summed
        from reports.read_slices(p_as_of) s
        where s.resource = 'transaction' and s.bounds && tstzrange(p_from, p_to)
      ), read as materialized (
        select d.day, d.bounds, newest.run, newest.slice, newest.read_at,
               round(100 * coalesce(parts.seconds, 0) / extract(epoch from upper(d.bounds) - lower(d.bounds)), 2) as percent
        from days d
        left join lateral (
          select s.run, s.slice, s.read_at from slices s where s.is_summed and s.bounds @> d.bounds
          order by s.read_at desc, s.run desc, s.slice limit 1
        ) newest on true
        left join lateral (
          select sum(extract(epoch from upper(r) - lower(r))) as seconds
          from (select range_agg(s.bounds) as got from slices s where s.bounds && d.bounds) g,
               unnest(g.got * tstzmultirange(d.bounds)) r
        ) parts on true
      ), here as (
        select (t.created_at at time zone p_zone)::date as day, t.currency, t.type, t.status, count(*) as n,
               sum(abs(t.amount)) as total, max(t.updated_at) as changed_at
        from reports.transactions(p_as_of) t
        -- Other days than those of the period fall out below. So written, the planner knows how many rows there are.
        where t.created_at >= p_from - interval '26 hours' and t.created_at < p_to + interval '26 hours'
          and t.currency is not null and t.type is not null and t.status is not null and t.amount is not null
        group by 1, 2, 3, 4
      ), changed as (select h.day, max(h.changed_at) as at from here h group by h.day
      ), there as (
        select m.day, m.currency, m.type, m.status, m.n, abs(m.sum_minor) as total
        from read r join reconcile.daily_sums m on m.run = r.run and m.slice = r.slice and m.day = r.day
      )
      select coalesce(h.day, s.day), coalesce(h.currency, s.currency), coalesce(h.type, s.type),
             coalesce(h.status, s.status), f.service_count, f.service_sum, coalesce(h.n, 0),
             coalesce(h.total, 0)::bigint, f.service_count - coalesce(h.n, 0),
             (f.service_sum - coalesce(h.total, 0))::bigint, r.percent, r.run,
             case when r.run is null then 'not read'
                  when f.service_count = coalesce(h.n, 0) and f.service_sum = coalesce(h.total, 0) then 'equal'
                  when c.at >= r.read_at then 'changed since' else 'differs' end
      from here h
      full join there s on s.day = h.day and s.currency = h.currency and s.type = h.type and s.status = h.status
      join read r on r.day = coalesce(h.day, s.day)
      left join changed c on c.day = r.day
      cross join lateral (
        select case when r.run is not null then coalesce(s.n, 0) end as service_count,
               case when r.run is not null then coalesce(s.total, 0)::bigint end as service_sum
      ) f
    $$;
  `);
}

/** A final number names a day of the zone that the closes have: cut by another one, the day has other contents. */
const journal = (db: Knex) =>
  db.raw(`
    create or replace function reports.journal(p_from timestamptz, p_to timestamptz, p_zone text,
                                               p_as_of timestamptz default null,
                                               p_accounts jsonb default reports.default_accounts(),
                                               p_final_until timestamptz default null)
    returns table (number text, status text, date date, account text, description text, debit bigint, credit bigint,
                   currency text, line bigint)
    language sql stable parallel safe as $$
      with final as (
        select case when bool_and(c.time_zone = p_zone) is not false
                    then greatest(p_final_until, max(c.to_at)) end as until
        from reports.closes c
        where c.closed_at <= coalesce(p_as_of, 'infinity')
      ), posted as (
        select (b.booked_at at time zone p_zone)::date as day, b.currency, b.kind,
               coalesce(b.booked_at < f.until, false) as is_final,
               case when b.is_late then (b.at at time zone p_zone)::date end as happened_on, b.amount < 0 as is_out,
               count(*) as n, abs(sum(b.amount))::bigint as amount
        from reports.booked_movements(p_as_of) b cross join final f
        where b.booked_at >= p_from and b.booked_at < p_to and b.amount <> 0
        group by 1, 2, 3, 4, 5, 6
      ), sided as (
        select p.*, k.place, k.label, side.is_debit,
               case when side.is_clearing then p_accounts->>'clearing' else p_accounts->>k.account end as account
        from posted p
        join (values ('sale', 1, 'sales', 'sales'), ('refund', 2, 'refunds', 'refunds'),
                     ('chargeback', 3, 'chargebacks', 'chargebacks'),
                     ('reversal', 4, 'chargebacks dismissed', 'chargebacks')) as k(kind, place, label, account) using (kind)
        cross join lateral (values (true, not p.is_out), (false, p.is_out)) as side(is_clearing, is_debit)
      )
      select case when s.is_final then 'TH-' else 'PRELIM-' end || to_char(s.day, 'YYYYMMDD') || '-' || upper(s.currency),
             case when s.is_final then 'final' else 'preliminary' end, s.day, s.account,
             s.n || ' ' || s.label || coalesce(' of ' || to_char(s.happened_on, 'YYYY-MM-DD')
               || ', learned after its month was closed', ''),
             case when s.is_debit then s.amount else 0 end, case when s.is_debit then 0 else s.amount end, s.currency,
             row_number() over (partition by s.day, s.currency, s.is_final
               order by s.happened_on nulls first, s.place, s.is_out, s.is_debit desc)
      from sided s
    $$;
  `);

export function down(): Promise<void> {
  throw new Error("reports cannot be made as slow again: restore the database from a backup");
}
