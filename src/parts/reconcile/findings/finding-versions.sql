-- A trigger, since findings are written in several places and none may forget the version. It has the owner's rights:
-- reports as of a time read these versions, so no role may add one by itself.
create or replace function reconcile.keep_finding() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
begin
    insert into reconcile.finding_versions (finding, content) values (new.id, to_jsonb(new));
    return null;
end
$$;

create or replace trigger findings_opened after insert on reconcile.findings
  for each row execute function reconcile.keep_finding();

-- Compares what reports show. A finding that is only seen again by a later run needs no version.
create or replace trigger findings_changed after update on reconcile.findings
  for each row when (
    (old.class, old.identity, old.severity, old.resource, old.object_id, old.differences, old.amount_at_risk_minor,
     old.currency, old.state, old.first_seen, old.healed_at, old.cause, old.history, old.ack_by, old.ack_at,
     old.ack_note, old.object_at, old.evidence->>'mode')
    is distinct from
    (new.class, new.identity, new.severity, new.resource, new.object_id, new.differences, new.amount_at_risk_minor,
     new.currency, new.state, new.first_seen, new.healed_at, new.cause, new.history, new.ack_by, new.ack_at,
     new.ack_note, new.object_at, new.evidence->>'mode')
  ) execute function reconcile.keep_finding();
