-- Findings about a time before p_to that are neither healed nor acknowledged. A serious one makes the verdict FAIL.
create or replace function reports.open_findings(p_to timestamptz, p_as_of timestamptz default null)
returns table (finding bigint, class text, identity text, severity text, resource text, object_id text,
               first_seen timestamptz, is_serious boolean)
language sql stable parallel safe as $$
  select f.finding, f.class, f.identity, f.severity, f.resource, f.object_id, f.first_seen,
         f.severity in ('critical', 'high') and reconcile.is_enforced(f.class, f.mode)
  from reports.finding_lives(p_as_of) f
  where f.healed_at is null and f.ack_by is null and (f.object_at is null or f.object_at < p_to)
$$;
