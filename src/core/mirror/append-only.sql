-- The history is append-only. Only an erasure and a heal may change it, since a person decided each and it is recorded
-- (mirror.erasure_log, mirror.heals). Both set tallyhook.erasure in their transaction.
create or replace function mirror.refuse_change() returns trigger language plpgsql as $$
begin
    if current_setting('tallyhook.erasure', true) = 'on' and tg_op <> 'TRUNCATE' then
      return case tg_op when 'DELETE' then old else new end;
    end if;
    raise exception 'mirror.versions is append-only (% refused)', lower(tg_op)
      using errcode = 'restrict_violation',
            hint = 'Only the commands "customers erase" and "heal" of Tallyhook may change history.';
end
$$;

create or replace trigger versions_append_only before update or delete on mirror.versions
  for each row execute function mirror.refuse_change();

create or replace trigger versions_no_truncate before truncate on mirror.versions
  for each statement execute function mirror.refuse_change();

create or replace function mirror.refuse_log_change() returns trigger language plpgsql as $$
begin
    raise exception 'mirror.erasure_log is append-only (% refused)', lower(tg_op)
      using errcode = 'restrict_violation';
end
$$;

create or replace trigger erasure_log_append_only
  before delete or truncate or update of id, customer_id, erased_at, erased_by, counts on mirror.erasure_log
  for each statement execute function mirror.refuse_log_change();

-- A reason may name the next person to be erased.
create or replace trigger erasure_log_reason before update of reason on mirror.erasure_log
  for each statement when (current_setting('tallyhook.erasure', true) is distinct from 'on')
  execute function mirror.refuse_log_change();

create or replace function mirror.refuse_heal_change() returns trigger language plpgsql as $$
begin
    raise exception 'mirror.heals is append-only (% refused)', lower(tg_op) using errcode = 'restrict_violation';
end
$$;

create or replace trigger heals_append_only
  before delete or truncate
    or update of seq, resource, id, healed_at, healed_by, before_sha256, after_sha256, changed_columns on mirror.heals
  for each statement execute function mirror.refuse_heal_change();

create or replace trigger heals_reason before update of reason on mirror.heals
  for each statement when (current_setting('tallyhook.erasure', true) is distinct from 'on')
  execute function mirror.refuse_heal_change();
