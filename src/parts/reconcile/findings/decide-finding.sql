-- A person's decisions about a finding. The dashboard's role may read findings but change none: these functions do what
-- their names say, and record the person who decided, so that no finding ends without a trace. A run's own findings are
-- the worker's to write. session_user is the role that logged in.

-- No other transaction changes the finding until this one ends.
create or replace function reconcile.lock_finding(p_id bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform from reconcile.findings f where f.id = p_id for update;
end
$$;

-- Returns false where no unhealed finding has this number: then nothing is recorded.
create or replace function reconcile.acknowledge_finding(
  p_id bigint, p_note text, p_at timestamptz, p_account bigint, p_actor text, p_via text, p_address text
) returns boolean language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  former text;
begin
  if not has_column_privilege(session_user, 'people.audit', 'actor', 'insert')
     or not has_table_privilege(session_user, 'reconcile.findings', 'select') then
    raise exception 'the role % may not acknowledge findings', session_user using errcode = 'insufficient_privilege';
  end if;
  if coalesce(btrim(p_actor), '') = '' or coalesce(btrim(p_note), '') = '' then
    raise exception 'a finding is acknowledged by a person, with a note' using errcode = 'check_violation';
  end if;
  select f.state into former from reconcile.findings f where f.id = p_id and f.state <> 'healed' for update;
  if not found then
    return false;
  end if;
  update reconcile.findings f set state = 'acknowledged', ack_by = p_actor, ack_note = p_note, ack_at = p_at
  where f.id = p_id;
  insert into people.audit (account_id, actor, via, address, action, subject_kind, subject_id, before)
  values (p_account, p_actor, p_via, p_address, 'finding.acknowledged', 'finding', p_id::text,
          jsonb_build_object('state', former));
  return true;
end
$$;

-- Heals the findings of an object that this transaction has healed: mirror.heals has the person and the reason. Of
-- these keys, only findings about that object, and never a broken invariant: a run checks it again. Returns their
-- number.
create or replace function reconcile.heal_findings(p_heal bigint, p_keys text[], p_at timestamptz) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  heal mirror.heals;
  changed integer;
begin
  if not has_column_privilege(session_user, 'mirror.heals', 'reason', 'insert') then
    raise exception 'the role % may not heal', session_user using errcode = 'insufficient_privilege';
  end if;
  -- The database dates a heal itself.
  select * into heal from mirror.heals h where h.seq = p_heal and h.healed_at >= transaction_timestamp();
  if not found then
    raise exception 'the transaction records no heal %', p_heal using errcode = 'restrict_violation';
  end if;
  update reconcile.findings f set state = 'healed', healed_at = p_at
  where f.key = any(p_keys) and f.state <> 'healed' and f.class <> 'identity'
    and f.resource = heal.resource and f.object_id = heal.id;
  get diagnostics changed = row_count;
  return changed;
end
$$;
