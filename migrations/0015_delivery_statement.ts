import type { Knex } from "knex";

/**
 * The delivery statement reads the mirror's rows instead of sorting their history, tells the documented events apart, and looks
 * for what was announced in the inbox alone, whoever brought the state here first.
 */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    drop function reports.delivery_statement;

    -- The last change of each object, and the event that documents it (spec, Events); null: none does. A chargeback's event
    -- has no name there: any event about the order stands for it. Of customers only the creation is a change.
    create function reports.last_changes(p_as_of timestamptz default null)
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
             end, s.at
      from state s
    $$;

    -- What changed in the period, by the last state of each object: intermediate ones cannot be seen in lists. What
    -- changed before the first fill began and was not received is no missed delivery. In time: here within ten minutes.
    -- An event may be dated a moment before the state that it shows.
    create function reports.delivery_statement(p_from timestamptz, p_to timestamptz, p_zone text,
                                               p_as_of timestamptz default null)
    returns table (resource text, event text, changes bigint, announced bigint, received bigint, in_time bigint,
                   late bigint, missed bigint, healed bigint, first_fill bigint)
    language sql stable parallel safe as $$
      with changed as (
        select c.* from reports.last_changes(p_as_of) c where c.at >= p_from and c.at < p_to
      ), filled as (
        select max(r.t0) as until from reconcile.runs r
        where r.first_fill and r.started_at <= coalesce(p_as_of, 'infinity')
      ), arrived as (
        select c.resource, c.id, min(r.received_at) as received_at
        from changed c
        join inbox.progress p on p.resource_type = c.resource and p.resource_id = c.id
        join inbox.receipts r on r.seq = p.seq
        where r.event_created_at >= c.at - interval '2 seconds' and r.received_at <= coalesce(p_as_of, 'infinity')
          and (r.type = c.event or c.event = 'order.(chargeback)')
        group by c.resource, c.id
      ), traced as (
        select c.resource, c.event, c.at, a.received_at, a.received_at is null and c.at < f.until is true as is_fill
        from changed c cross join filled f
        left join arrived a on a.resource = c.resource and a.id = c.id
      ), counted as (
        select t.resource, t.event, count(*) filter (where not t.is_fill) as changes,
               count(*) filter (where t.event is not null and not t.is_fill) as announced,
               count(t.received_at) as received,
               count(*) filter (where t.received_at < t.at + interval '10 minutes') as in_time,
               count(*) filter (where t.event is not null and t.received_at is null and not t.is_fill) as healed,
               count(*) filter (where t.is_fill) as fill
        from traced t group by t.resource, t.event
      ), unhealed as (
        select l.resource, count(*) as n from reports.finding_lives(p_as_of) l
        where l.class in ('missing_here', 'behind') and l.resource in ('order', 'subscription', 'customer')
          and l.healed_at is null and l.first_seen >= p_from and l.first_seen < p_to
        group by l.resource
      )
      -- What is not here yet cannot tell which event it lacks.
      select c.resource, coalesce(c.event, 'none is documented'), c.changes, c.announced, c.received, c.in_time,
             c.received - c.in_time, c.healed, c.healed, c.fill
      from counted c
      union all
      select u.resource, 'not yet healed', u.n, u.n, 0, 0, 0, u.n, 0, 0 from unhealed u
    $$;
  `);
}

export async function down(db: Knex): Promise<void> {
  await db.raw(`
    drop function reports.delivery_statement, reports.last_changes;

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
