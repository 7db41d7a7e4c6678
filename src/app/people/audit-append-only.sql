create or replace function people.refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'people.audit is append-only (% refused)', lower(tg_op) using errcode = 'restrict_violation';
end
$$;

create or replace trigger audit_append_only before update or delete or truncate on people.audit
  for each statement execute function people.refuse_change();
