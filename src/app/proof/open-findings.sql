-- Findings about a time before p_to that are neither healed nor acknowledged. A serious one makes the verdict FAIL.
create or replace function reports.open_findings(p_to timestamptz, p_as_of timestamptz default null)
returns table (finding bigint, class text, identity text, severity text, resource text, object_id text,
               first_seen timestamptz, is_serious boolean)
language sql stable parallel safe as $$
  select f.finding, f.class, f.identity, f.severity, f.resource, f.object_id, f.first_seen,
         f.severity in ('critical', 'high') and reconcile.is_enforced(f.class, f.mode)
  -- Of the findings of years nearly all are healed: one that was healed by p_as_of, and has no state that was recorded
  -- later, was healed then.
  from reports.finding_lives_of(p_as_of, array(
    select n.id from reconcile.findings n where n.healed_at is null
    union select n.id from reconcile.findings n where n.healed_at > p_as_of
    union select k.finding from reconcile.finding_versions k where k.recorded_at > p_as_of)) f
  where f.healed_at is null and f.ack_by is null and (f.object_at is null or f.object_at < p_to)
$$;
