-- Findings first seen in the period, and earlier ones that were not healed when it began.
create or replace function reports.exceptions(p_from timestamptz, p_to timestamptz, p_zone text,
                                              p_as_of timestamptz default null)
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
