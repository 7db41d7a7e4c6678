-- Changes in the period, by the last state of each object: lists do not show intermediate states. A change before the
-- T0 of the initial import whose event was not received is not a missed delivery. In time means received within ten
-- minutes. An event may be dated slightly before the state that it shows. Findings count for the resources that
-- reports.last_changes knows. Where old events were removed (inbox.dropped), it is unknown whether a change without an
-- event was announced: such changes are rows of their own, neither received nor missed.
create or replace function reports.delivery_statement(p_from timestamptz, p_to timestamptz, p_zone text,
                                                      p_as_of timestamptz default null)
returns table (resource text, event text, changes bigint, announced bigint, received bigint, in_time bigint,
               late bigint, missed bigint, healed bigint, first_fill bigint)
language sql stable parallel safe as $$
  with changed as (
    -- Numbered, since to sort a million numbers is quick and to sort ids is not.
    select row_number() over () as n, c.* from reports.last_changes(p_as_of) c where c.at >= p_from and c.at < p_to
  ), filled as (
    select max(r.t0) as until from reconcile.runs r
    where r.first_fill and r.started_at <= coalesce(p_as_of, 'infinity')
  ), told as (
    -- Without the receipts, which have the bytes. Only events that a release before 0014 applied are looked up there.
    select p.resource_type, p.resource_id, p.event_type as type, p.event_at as at, p.arrived_at
    from inbox.progress p
    where p.event_at >= p_from - reports.same_moment()
      and (p_as_of is null or p.object_known_at <= p_as_of and p.arrived_at <= p_as_of)
    union all
    select p.resource_type, p.resource_id, r.type, r.event_created_at, r.received_at
    from inbox.progress p join inbox.receipts r on r.seq = p.seq
    where p.arrived_at is null and p.resource_id is not null
      and r.event_created_at >= p_from - reports.same_moment()
      and (p_as_of is null or p.object_known_at <= p_as_of and r.received_at <= p_as_of)
  ), arrived as (
    select c.n, c.resource, c.event, c.at, min(e.arrived_at) as received_at
    from changed c left join told e
      on e.resource_type = c.resource and e.resource_id = c.id and e.at >= c.at - reports.same_moment()
        and (e.type = c.event or c.event = 'order.(chargeback)')
    group by c.n, c.resource, c.event, c.at
  ), traced as (
    select a.resource, a.event, a.at, a.received_at, a.received_at is null and a.at < f.until is true as is_fill,
           a.received_at is null and a.event is not null and (a.at < f.until) is not true
             and a.at - reports.same_moment() <= d.until is true as is_removed
    from arrived a cross join filled f left join inbox.dropped d on true
  ), counted as (
    select t.resource, t.event, t.is_removed, count(*) filter (where not t.is_fill) as changes,
           count(*) filter (where t.event is not null and not t.is_fill) as announced,
           count(t.received_at) as received,
           count(*) filter (where t.received_at < t.at + interval '10 minutes') as in_time,
           count(*) filter (where t.event is not null and t.received_at is null and not t.is_fill
                            and not t.is_removed) as healed,
           count(*) filter (where t.is_fill) as fill
    from traced t group by t.resource, t.event, t.is_removed
  ), unhealed as (
    select l.resource, count(*) as n from reports.finding_lives(p_as_of) l
    where l.class in ('missing_here', 'behind') and l.resource in ('order', 'subscription', 'customer')
      and l.healed_at is null and l.first_seen >= p_from and l.first_seen < p_to
    group by l.resource
  )
  -- For an object that is still missing or behind here, the missed event is unknown.
  select c.resource,
         coalesce(c.event, 'none is documented')
           || case when c.is_removed then ': not known, events of then were removed' else '' end,
         c.changes, c.announced, c.received, c.in_time,
         c.received - c.in_time, c.healed, c.healed, c.fill
  from counted c
  union all
  select u.resource, 'not yet healed', u.n, u.n, 0, 0, 0, u.n, 0, 0 from unhealed u
$$;
