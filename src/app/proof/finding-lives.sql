-- One row for each time that a finding was opened, healed since or not: the latest, and those before it (`history`).
-- p_findings: only of these; null: of all.
create or replace function reports.finding_lives_of(p_as_of timestamptz, p_findings bigint[])
returns table (finding bigint, class text, identity text, severity text, resource text, object_id text,
               differences jsonb, amount_at_risk bigint, currency text, first_seen timestamptz,
               healed_at timestamptz, cause text, ack_by text, ack_note text, mode text, object_at timestamptz)
language sql stable parallel safe as $$
  select f.id, f.class, f.identity, f.severity, f.resource, f.object_id, l.differences, f.amount_at_risk_minor,
         f.currency, l.first_seen, case when l.healed_at <= coalesce(p_as_of, 'infinity') then l.healed_at end,
         l.cause, l.ack_by, l.ack_note, f.evidence->>'mode', f.object_at
  from (
    select n.* from reconcile.findings n where p_as_of is null and (p_findings is null or n.id = any(p_findings))
    union all
    select v.* from (
      select distinct on (k.finding) k.content from reconcile.finding_versions k
      where k.recorded_at <= p_as_of and (p_findings is null or k.finding = any(p_findings)) order by k.finding, k.recorded_at desc, k.id desc
    ) k cross join lateral jsonb_populate_record(null::reconcile.findings, k.content) v
  ) f
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

create or replace function reports.finding_lives(p_as_of timestamptz default null)
returns table (finding bigint, class text, identity text, severity text, resource text, object_id text,
               differences jsonb, amount_at_risk bigint, currency text, first_seen timestamptz,
               healed_at timestamptz, cause text, ack_by text, ack_note text, mode text, object_at timestamptz)
language sql stable parallel safe as $$
  select l.* from reports.finding_lives_of(p_as_of, null) l
$$;
