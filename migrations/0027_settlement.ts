import type { Knex } from "knex";

/**
 * A sale that is paid and not settled is a state of its own: it is sold, and not captured yet. Live that lasts one to
 * three business days, and no event tells of the end.
 */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    drop function reports.month_end;

    create function reports.is_paid(p_order_status text) returns boolean
    language sql immutable parallel safe as $$
      select p_order_status in ('succeeded', 'partially_refunded', 'refunded', 'refund_failed', 'chargeback',
                                'chargeback_accepted', 'chargeback_dismissed')
    $$;
    comment on function reports.is_paid is 'Whether an order of this status was paid, whatever was given back since.';

    create function reports.is_unsettled(p_type text, p_status text) returns boolean
    language sql immutable parallel safe as $$
      select p_type = 'sale' and p_status in ('pending', 'in_progress')
    $$;
    comment on function reports.is_unsettled is
      'Whether a transaction is a sale that is not confirmed yet; it is sold where its order is paid.';

    -- Sales that were last read unsettled, also those that an event about their order has shown settled since.
    create index transactions_unsettled on mirror.transactions (id)
      where type = 'sale' and deleted_at is null and data->>'status' in ('pending', 'in_progress');

    -- The sign of a refund is not shown by the interface: amounts are taken absolute and signed here. A sale is booked
    -- when it is paid, settled or not, so that its settlement moves nothing. What has no date cannot be booked.
    create or replace function reports.movements(p_as_of timestamptz default null)
    returns table (movement text, kind text, object_id text, order_id text, at timestamptz, currency text,
                   amount bigint)
    language sql stable parallel safe as $$
      select t.type || ':' || t.id, t.type, t.id, t.order_id, t.created_at, coalesce(t.currency, 'xxx'),
             case t.type when 'sale' then 1 else -1 end * coalesce(abs(t.amount), 0)
      from reports.transactions(p_as_of) t
      where t.created_at is not null and case
          when t.type = 'sale' and t.status in ('succeeded', 'chargeback') then true
          when t.type = 'refund' then t.status = 'succeeded'
          -- One order after another: there are few of them.
          when reports.is_unsettled(t.type, t.status) then reports.is_paid((
            select o.status from reports.orders(p_as_of) o where o.id collate "C" = t.order_id limit 1))
          else false end
      union all
      select m.kind || ':' || c.key, m.kind, c.key, c.order_id, m.at, coalesce(c.currency, 'xxx'),
             coalesce(m.amount, 0)
      from reports.chargebacks(p_as_of) c
      cross join lateral (
        values ('chargeback', c.opened_at, -c.amount), ('reversal', c.resolved_at, c.amount)
      ) as m(kind, at, amount)
      where m.at is not null and (m.kind = 'chargeback' or c.state = 'dismissed')
    $$;

    -- Sales that were paid and not settled at one or more of the times, which must be in order: \`paid_at < time\` and
    -- \`ended_at\` null or not before it. A sale ends unsettled when the service first showed it settled. Of one that
    -- was never seen unsettled only its last change is known, which was its settlement if it came within a week. A sale
    -- that was never settled counts only while a closed month has it on its books.
    create function reports.settlement_spans(p_times timestamptz[], p_as_of timestamptz default null)
    returns table (id text, order_id text, status text, currency text, amount bigint, paid_at timestamptz,
                   ended_at timestamptz)
    language sql stable parallel safe as $$
      with candidate as (
        select t.id, t.order_id, t.status, coalesce(t.currency, 'xxx') as currency,
               coalesce(abs(t.amount), 0) as amount, t.created_at
        from reports.transactions(p_as_of) t
        where t.type = 'sale' and t.created_at < p_times[cardinality(p_times)]
          and (t.status in ('pending', 'in_progress')
               or width_bucket(t.created_at, p_times) < width_bucket(t.updated_at, p_times)
               or t.id in (select n.id from mirror.transactions n where n.type = 'sale' and n.deleted_at is null
                             and n.data->>'status' in ('pending', 'in_progress')))
      ), known as (
        select c.*, h.was_unsettled, h.settled_at, h.first_status
        from candidate c
        cross join lateral (
          select bool_or(v.data->>'status' in ('pending', 'in_progress')) as was_unsettled,
                 min(v.source_updated_at) filter (where v.data->>'status' in ('succeeded', 'chargeback')) as settled_at,
                 (array_agg(v.data->>'status' order by v.source_updated_at))[1] as first_status
          from mirror.versions v
          where v.resource in ('transaction', 'transaction.inline') and v.id = c.id
            and (p_as_of is null or v.recorded_at <= p_as_of)
        ) h
      ), closed as (
        select max(c.to_at) as to_at from reports.closes c where c.closed_at <= coalesce(p_as_of, 'infinity')
      ), booked as (
        select f.object_id, min(f.booked_at) filter (where f.amount < 0) as taken_back_at
        from reports.closed_movements f join reports.closes c on c.id = f.close
        where c.closed_at <= coalesce(p_as_of, 'infinity') and f.kind = 'sale'
          and f.object_id in (select k.id from known k where k.status in ('voided', 'failed'))
        group by f.object_id
      )
      select k.id, k.order_id, k.status, k.currency, k.amount, k.created_at, e.ended_at
      from known k
      left join booked b on b.object_id = k.id
      cross join closed
      cross join lateral (
        select case
          when k.status in ('pending', 'in_progress') then null
          when k.was_unsettled and k.settled_at is not null then k.settled_at
          when k.status in ('voided', 'failed') then coalesce(b.taken_back_at, closed.to_at)
          when k.first_status = 'succeeded' and k.settled_at < k.created_at + interval '7 days' then k.settled_at
          else k.created_at end as ended_at
      ) e
      where case
          when k.status in ('pending', 'in_progress') then reports.is_paid((
            select o.status from reports.orders(p_as_of) o where o.id collate "C" = k.order_id limit 1))
          when k.status in ('voided', 'failed') and k.settled_at is null then b.object_id is not null
          -- The sandbox settles at once, and a moment later is at once.
          else e.ended_at > k.created_at + interval '2 seconds' end
    $$;

    -- The balance is that of all time, gross of fees and payouts, which the service does not tell: it never empties.
    create function reports.month_end(p_from timestamptz, p_to timestamptz, p_zone text,
                                      p_as_of timestamptz default null)
    returns table (month date, currency text, cumulative_gross_opening bigint, sales bigint, refunds bigint,
                   chargebacks bigint, reversals bigint, corrections bigint, cumulative_gross_closing bigint,
                   unsettled_opening bigint, unsettled_closing bigint)
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
                               (p_to - interval '1 microsecond') at time zone p_zone, interval '1 month')::date
      ), bounds as (
        select c.month, greatest(p_from, reports.day_start(c.month, p_zone)) as from_at,
               least(p_to, reports.day_start((c.month + interval '1 month')::date, p_zone)) as to_at
        from calendar c where c.month is not null
      ), span as materialized (
        select s.* from reports.settlement_spans(
          (select array_agg(b.from_at order by b.from_at) || max(b.to_at) from bounds b), p_as_of) s
      ), unsettled as (
        select t.at, s.currency, sum(s.amount) as amount
        from (select b.from_at as at from bounds b union select b.to_at from bounds b) t
        join span s on s.paid_at < t.at and (s.ended_at is null or s.ended_at >= t.at)
        group by t.at, s.currency
      ), rolled as (
        select c.month, k.currency, s.sales, s.refunds, s.chargebacks, s.reversals, s.corrections,
               coalesce(s.moved, 0) as moved,
               sum(coalesce(s.moved, 0)) over (partition by k.currency order by c.month nulls first) as closing
        from calendar c cross join (select distinct currency from summed) k
        left join summed s on s.currency = k.currency and s.month is not distinct from c.month
      )
      select r.month, r.currency, (r.closing - r.moved)::bigint, coalesce(r.sales, 0)::bigint,
             coalesce(r.refunds, 0)::bigint, coalesce(r.chargebacks, 0)::bigint, coalesce(r.reversals, 0)::bigint,
             coalesce(r.corrections, 0)::bigint, r.closing::bigint, coalesce(o.amount, 0)::bigint,
             coalesce(e.amount, 0)::bigint
      from rolled r
      join bounds b on b.month = r.month
      left join unsettled o on o.at = b.from_at and o.currency = r.currency
      left join unsettled e on e.at = b.to_at and e.currency = r.currency
    $$;

    -- Each sale that was paid before the end of the period and settled after it, or is not settled yet.
    create function reports.cut_off(p_from timestamptz, p_to timestamptz, p_zone text, p_as_of timestamptz default null)
    returns table (sale text, order_id text, order_number text, paid_on date, paid_at timestamptz, status text,
                   settled_on date, days integer, currency text, amount bigint)
    language sql stable parallel safe as $$
      select s.id, s.order_id, o.order_number, (s.paid_at at time zone p_zone)::date, s.paid_at, s.status,
             case when s.status not in ('voided', 'failed') then (s.ended_at at time zone p_zone)::date end,
             ((p_to - interval '1 microsecond') at time zone p_zone)::date - (s.paid_at at time zone p_zone)::date,
             s.currency, s.amount
      from reports.settlement_spans(array[p_to], p_as_of) s
      left join reports.orders(p_as_of) o on o.id = s.order_id
      where s.paid_at < p_to and (s.ended_at is null or s.ended_at >= p_to)
    $$;

    create or replace function reports.refunds(p_from timestamptz, p_to timestamptz, p_zone text,
                                               p_as_of timestamptz default null)
    returns table (refund text, order_id text, order_number text, customer_id text, sold_on date, refunded_on date,
                   refunded_at timestamptz, currency text, amount bigint, cumulative bigint, extent text, status text,
                   days integer)
    language sql stable parallel safe as $$
      with refund as (
        select t.*, sum(case when t.status = 'succeeded' then abs(t.amount) else 0 end)
                 over (partition by coalesce(t.order_id, t.id) order by t.created_at, t.id collate "C") as given_back
        from reports.transactions(p_as_of) t where t.type = 'refund' and t.created_at < p_to
      ), sale as (
        select t.order_id, min(t.created_at) as sold_at from reports.transactions(p_as_of) t
        where t.type = 'sale' and t.status not in ('failed', 'voided') and t.order_id in (select order_id from refund)
        group by t.order_id
      )
      select r.id, r.order_id, o.order_number, coalesce(o.customer_id, r.customer_id),
             (coalesce(s.sold_at, o.created_at) at time zone p_zone)::date, (r.created_at at time zone p_zone)::date, r.created_at,
             r.currency,
             abs(r.amount), r.given_back::bigint,
             case when o.id is null then 'unknown' when r.status <> 'succeeded' then 'none'
                  when r.given_back >= o.total then 'full' else 'partial' end,
             r.status, (r.created_at at time zone p_zone)::date
               - (coalesce(s.sold_at, o.created_at) at time zone p_zone)::date
      from refund r left join reports.orders(p_as_of) o on o.id = r.order_id
      left join sale s on s.order_id = r.order_id
      where r.created_at >= p_from
    $$;

    -- What cannot be summed at the service is left out on both sides.
    create or replace function reports.daily_control(p_from timestamptz, p_to timestamptz, p_zone text,
                                                     p_as_of timestamptz default null)
    returns table (day date, currency text, type text, status text, service_count bigint, service_sum bigint,
                   mirror_count bigint, mirror_sum bigint, difference_count bigint, difference_sum bigint,
                   coverage_percent numeric, run bigint, outcome text)
    language sql stable parallel safe as $$
      with days as (
        select d.day, tstzrange(reports.day_start(d.day, p_zone), reports.day_start(d.day + 1, p_zone)) as bounds
        from (select generate_series((p_from at time zone p_zone)::date,
                ((p_to - interval '1 microsecond') at time zone p_zone)::date, interval '1 day')::date as day) d
      ), read as (
        select d.day, d.bounds, newest.run, newest.slice, newest.read_at,
               round(100 * coalesce(parts.seconds, 0) / extract(epoch from upper(d.bounds) - lower(d.bounds)), 2) as percent
        from days d
        left join lateral (
          select s.run, s.slice, s.read_at from reports.read_slices(p_as_of) s
          where s.resource = 'transaction' and s.bounds @> d.bounds
            and exists (select from reconcile.daily_sums m where m.run = s.run)
          order by s.read_at desc, s.run desc, s.slice limit 1
        ) newest on true
        left join lateral (
          select sum(extract(epoch from upper(r) - lower(r))) as seconds
          from (select range_agg(s.bounds) as got from reports.read_slices(p_as_of) s
                where s.resource = 'transaction' and s.bounds && d.bounds) g,
               unnest(g.got * tstzmultirange(d.bounds)) r
        ) parts on true
      ), here as (
        select (t.created_at at time zone p_zone)::date as day, t.currency, t.type, t.status, count(*) as n,
               sum(abs(t.amount)) as total, max(t.updated_at) as changed_at
        from reports.transactions(p_as_of) t
        where t.created_at >= (select min(lower(bounds)) from days) and t.created_at < (select max(upper(bounds)) from days)
          and num_nulls(t.currency, t.type, t.status, t.amount) = 0
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

    -- The last change of each object, and the event that documents it (spec, Events); null: none does. A chargeback's
    -- event has no name there: any event about the order stands for it. Of customers only the creation is a change. A
    -- settlement is none, though the order's time moves with it (src/reconcile/settlement.ts): its last change is then
    -- the last charge or refund.
    create or replace function reports.last_changes(p_as_of timestamptz default null)
    returns table (resource text, id text, event text, at timestamptz)
    language sql stable parallel safe as $$
      with state as (
        select 'order' as resource, o.id, o.status, null::bigint as cycle, null::timestamptz as period_start,
               o.created_at, o.source_updated_at as at
        from mirror.orders o
        where o.version <> '' and (p_as_of is null or not exists (
          select from mirror.versions c where c.resource = 'order' and c.id = o.id and c.recorded_at > p_as_of))
        union all
        select 'subscription', s.id, s.status, s.current_billing_cycle, s.current_period_start, s.created_at,
               s.source_updated_at
        from mirror.subscriptions s
        where s.version <> '' and (p_as_of is null or not exists (
          select from mirror.versions c where c.resource = 'subscription' and c.id = s.id and c.recorded_at > p_as_of))
        union all
        select 'customer', c.id, null, null, null, c.created_at, c.created_at
        from mirror.customers c
        where c.version <> '' and (p_as_of is null or not exists (
          select from mirror.versions v where v.resource = 'customer' and v.id = c.id and v.recorded_at > p_as_of))
        union all
        select k.resource, k.id, k.data->>'status', reports.whole(k.data->'current_billing_cycle'),
               (k.data->>'current_period_start')::timestamptz, (k.data->>'created_at')::timestamptz,
               case when k.resource = 'customer' then (k.data->>'created_at')::timestamptz else k.source_updated_at end
        from (
          select distinct on (v.resource, v.id) v.resource, v.id, v.data, v.source_updated_at
          from mirror.versions v
          where p_as_of is not null and v.resource in ('order', 'subscription', 'customer')
            and v.recorded_at <= p_as_of and (v.resource, v.id) in (
              select c.resource, c.id from mirror.versions c
              where c.resource in ('order', 'subscription', 'customer') and c.recorded_at > p_as_of)
          order by v.resource, v.id, v.source_updated_at desc, v.observed_at desc nulls last,
                   reports.status_rank(v.data->>'status') desc, v.content_hash desc
        ) k
      )
      , settled as (
        select t.order_id, max(t.created_at) as made_at, max(t.updated_at) filter (
                 where t.type = 'sale' and t.status in ('in_progress', 'succeeded')
                   and t.updated_at > t.created_at + interval '2 seconds') as settled_at
        from reports.transactions(p_as_of) t where t.order_id is not null group by t.order_id
      )
      select s.resource, s.id,
             case s.resource
               when 'customer' then 'customer.created'
               when 'order' then case
                 when s.status in ('partially_refunded', 'refunded') then 'order.refunded'
                 when s.status like 'chargeback%' then 'order.(chargeback)'
                 when s.status = 'pending' then 'order.created'
                 when s.status in ('succeeded', 'failed') then 'order.' || s.status end
               else case
                 when s.status = 'canceled' then 'subscription.canceled'
                 when s.status not in ('active', 'failed') then null
                 when s.cycle <= 1 and s.at < s.created_at + interval '5 seconds' then 'subscription.created'
                 when s.cycle > 1 and s.period_start >= s.at - interval '1 hour' then 'subscription.charged'
                 when s.status = 'active' then 'subscription.updated' end
             end, coalesce(w.made_at, s.at)
      from state s
      left join settled w on s.resource = 'order' and w.order_id = s.id and s.status not like 'chargeback%'
        and s.at between w.settled_at - interval '2 seconds' and w.settled_at + interval '2 seconds'
        and w.made_at < s.at - interval '2 seconds'
    $$;
  `);
}

export function down(): Promise<void> {
  throw new Error(
    "the settlement of sales cannot be taken out again: restore the database from a backup",
  );
}
