import type { Knex } from "knex";

/** The reports on what is proved: coverage and verdict, the daily control, findings, and what the service announced. */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    -- Slices of lists that were read to their end and show every object of their bounds (reconcile.coverage).
    create function reports.read_slices(p_as_of timestamptz default null)
    returns table (run bigint, slice integer, resource text, read_at timestamptz, bounds tstzrange)
    language sql stable parallel safe as $$
      select c.run, c.slice, c.resource, c.read_at, tstzrange(c.created_from, c.created_before)
      from reconcile.coverage c join reconcile.runs r on r.id = c.run
      where c.state = 'complete' and c.is_closed and c.pages > 0 and c.read_at is not null
        and (p_as_of is null or r.finished_at <= p_as_of)
    $$;

    -- One unhealed or healed life of a finding: an earlier one is in its history.
    create function reports.finding_lives(p_as_of timestamptz default null)
    returns table (finding bigint, class text, identity text, severity text, resource text, object_id text,
                   differences jsonb, amount_at_risk bigint, currency text, first_seen timestamptz,
                   healed_at timestamptz, cause text, ack_by text, ack_note text)
    language sql stable parallel safe as $$
      select f.id, f.class, f.identity, f.severity, f.resource, f.object_id, l.differences, f.amount_at_risk_minor,
             f.currency, l.first_seen, case when l.healed_at <= coalesce(p_as_of, 'infinity') then l.healed_at end,
             l.cause, l.ack_by, l.ack_note
      from reconcile.findings f
      cross join lateral (
        select f.differences, f.first_seen, f.healed_at, f.cause,
               case when f.ack_at <= coalesce(p_as_of, 'infinity') then f.ack_by end as ack_by,
               case when f.ack_at <= coalesce(p_as_of, 'infinity') then f.ack_note end as ack_note
        union all
        select h->'differences', (h->>'first_seen')::timestamptz, (h->>'healed_at')::timestamptz, h->>'cause',
               h->>'ack_by', h->>'ack_note'
        from jsonb_array_elements(f.history) h
      ) l
      where l.first_seen <= coalesce(p_as_of, 'infinity')
    $$;

    -- Whether everything created before p_to was read, not longer ago than the rotation takes (30 nights, and one to
    -- spare), and what is found and neither healed nor acknowledged. A balance needs all that came before it.
    create function reports.verdict(p_from timestamptz, p_to timestamptz, p_as_of timestamptz default null)
    returns table (verdict text, coverage_percent numeric, read_until timestamptz, last_run bigint, open_findings bigint,
                   open_warnings bigint)
    language sql stable as $$
      with fresh as (
        select s.resource, s.bounds from reports.read_slices(p_as_of) s
        where s.read_at >= coalesce(p_as_of, now()) - interval '31 days'
      ), start as (
        select least(p_from, min(lower(f.bounds)), min(upper(f.bounds))) as at from fresh f
      ), per_resource as (
        select k.resource, tstzmultirange(tstzrange(s.at, greatest(s.at, p_to))) as wanted,
               coalesce((select range_agg(f.bounds) from fresh f where f.resource = k.resource), '{}') as got
        from start s cross join unnest(array['order', 'transaction', 'subscription', 'customer']) as k(resource)
      ), seconds as (
        select p.resource, tstzrange(null, p_to) <@ p.got as is_whole,
               (select sum(extract(epoch from upper(r) - lower(r))) from unnest(p.wanted) r) as wanted,
               (select sum(extract(epoch from upper(r) - lower(r))) from unnest(p.wanted * p.got) r) as got,
               (select coalesce(upper(r), p_to) from unnest(p.got) r where lower_inf(r)) as until
        from per_resource p
      ), coverage as (
        select bool_and(s.is_whole) as is_whole,
               min(trunc(100 * coalesce(s.got, 0) / nullif(s.wanted, 0), 2)) as percent,
               case when bool_and(s.until is not null) then min(least(s.until, p_to)) end as until
        from seconds s
      ), found as (
        select count(*) filter (where f.severity in ('critical', 'high')) as serious,
               count(*) filter (where f.severity = 'warning') as warnings
        from reports.finding_lives(p_as_of) f where f.healed_at is null and f.ack_by is null
      )
      select case when c.is_whole is not true then 'INCOMPLETE' when f.serious > 0 then 'FAIL' else 'PASS' end,
             coalesce(c.percent, 0.00), c.until,
             (select max(r.id) from reconcile.runs r where r.finished_at <= coalesce(p_as_of, 'infinity')),
             f.serious, f.warnings
      from coverage c cross join found f
    $$;

    -- What the service's list showed of a whole day, by the newest slice that read it, beside the mirror. What changed
    -- after it was read is no difference.
    create function reports.daily_control(p_from timestamptz, p_to timestamptz, p_zone text,
                                          p_as_of timestamptz default null)
    returns table (day date, currency text, type text, status text, service_count bigint, service_sum bigint,
                   mirror_count bigint, mirror_sum bigint, difference_count bigint, difference_sum bigint,
                   coverage_percent numeric, run bigint, outcome text)
    language sql stable parallel safe as $$
      with days as (
        select d.day, tstzrange(d.day::timestamp at time zone p_zone, (d.day + 1)::timestamp at time zone p_zone) as bounds
        from (select generate_series((p_from at time zone p_zone)::date,
                ((p_to at time zone p_zone) - interval '1 microsecond')::date, interval '1 day')::date as day) d
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

    -- Found in the period, or found before and not healed when it began.
    create function reports.exceptions(p_from timestamptz, p_to timestamptz, p_zone text, p_as_of timestamptz default null)
    returns table (finding bigint, severity text, class text, identity text, resource text, object_id text,
                   service_value text, mirror_value text, currency text, amount_at_risk bigint,
                   first_seen timestamptz, age_days integer, healed_at timestamptz, cause text, owner text, note text)
    language sql stable parallel safe as $$
      select f.finding, f.severity, f.class, f.identity, f.resource, f.object_id,
             (select string_agg((d->>'field') || '=' || coalesce(d->>'service', ''), '; ' order by n)
              from jsonb_array_elements(f.differences) with ordinality x(d, n)),
             (select string_agg((d->>'field') || '=' || coalesce(d->>'mirror', ''), '; ' order by n)
              from jsonb_array_elements(f.differences) with ordinality x(d, n)),
             f.currency, f.amount_at_risk, f.first_seen,
             (least(coalesce(f.healed_at, p_to), p_to) at time zone p_zone)::date - (f.first_seen at time zone p_zone)::date,
             f.healed_at, f.cause, f.ack_by, f.ack_note
      from reports.finding_lives(p_as_of) f
      where f.first_seen < p_to and (f.healed_at is null or f.healed_at >= p_from)
    $$;

    -- States that changed at the service in the period and that an event announces (spec, Events): the current state of
    -- orders and subscriptions, and the creation of customers. Intermediate states cannot be seen in lists. A state
    -- that the first fill brought is not counted. In time: here within ten minutes.
    create function reports.delivery_statement(p_from timestamptz, p_to timestamptz, p_zone text,
                                               p_as_of timestamptz default null)
    returns table (resource text, changes bigint, announced bigint, in_time bigint, late bigint, missed bigint,
                   healed bigint, first_fill bigint)
    language sql stable parallel safe as $$
      with changed as (
        select v.resource, v.id, v.source_updated_at as at, v.cause, v.recorded_at
        from (
          select distinct on (w.resource, w.id) w.resource, w.id, w.source_updated_at, w.cause, w.recorded_at
          from mirror.versions w
          where w.resource in ('order', 'subscription') and (p_as_of is null or w.recorded_at <= p_as_of)
          order by w.resource, w.id, w.source_updated_at desc, w.observed_at desc nulls last,
                   w.content_hash desc
        ) v where v.source_updated_at >= p_from and v.source_updated_at < p_to
        union all
        select 'customer', v.id, v.source_updated_at, v.cause, v.recorded_at
        from mirror.versions v
        where v.resource = 'customer' and (p_as_of is null or v.recorded_at <= p_as_of)
          and v.source_updated_at = (v.data->>'created_at')::timestamptz
          and v.source_updated_at >= p_from and v.source_updated_at < p_to
      ), told as (
        select c.*, c.cause like 'event:%' as is_event,
               c.cause = 'import' or exists (
                 select from reconcile.runs r where c.cause = 'reconcile:' || r.id and r.first_fill) as is_fill
        from changed c
      ), traced as (
        select t.resource, t.at, t.is_fill, case when t.is_event then t.recorded_at else e.received_at end as received_at
        from told t
        left join lateral (
          select min(e.received_at) as received_at from inbox.events e
          where not t.is_event and not t.is_fill and e.resource_type = t.resource and e.resource_id = t.id
            and e.event_created_at >= t.at and e.received_at <= coalesce(p_as_of, 'infinity')
        ) e on true
      )
      select t.resource,
             count(*) filter (where not is_fill) + coalesce(min(f.n), 0), count(received_at),
             count(*) filter (where received_at < t.at + interval '10 minutes'),
             count(*) filter (where received_at >= t.at + interval '10 minutes'),
             count(*) filter (where received_at is null and not is_fill) + coalesce(min(f.n), 0),
             count(*) filter (where received_at is null and not is_fill),
             count(*) filter (where is_fill)
      from traced t
      left join (
        select l.resource, count(*) as n from reports.finding_lives(p_as_of) l
        where l.class in ('missing_here', 'behind') and l.healed_at is null and l.first_seen >= p_from
          and l.first_seen < p_to
        group by l.resource
      ) f on f.resource = t.resource
      group by t.resource
    $$;
  `);
}

export async function down(db: Knex): Promise<void> {
  await db.raw(`
    drop function reports.delivery_statement, reports.exceptions, reports.daily_control, reports.verdict,
                  reports.finding_lives, reports.read_slices`);
}
