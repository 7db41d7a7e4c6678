-- The creation time of an object, as the mirror has it; for a chargeback, that of its order or transaction.
create or replace function reconcile.created_at(p_resource text, p_id text) returns timestamptz
language sql stable as $$
  select case p_resource
    when 'chargeback' then least(mirror.created_at('order', p_id), mirror.created_at('transaction', p_id))
    else mirror.created_at(p_resource, p_id) end
$$;

-- Only a default: the code that records the finding may know the time better.
create or replace function reconcile.date_finding() returns trigger language plpgsql as $$
begin
    if new.object_at is null then
      new.object_at := reconcile.created_at(new.resource, new.object_id);
    end if;
    return new;
end
$$;

create or replace trigger findings_dated before insert or update of object_at on reconcile.findings
  for each row execute function reconcile.date_finding();
