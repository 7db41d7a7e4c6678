-- Sets when a recheck was concluded, so that a report as of a time knows which were open then, and when its object was
-- created, as the mirror has it: only that moment is unproved.
create or replace function reconcile.keep_recheck() returns trigger language plpgsql as $$
begin
    new.settled_at := case when new.state = 'settled' then clock_timestamp() end;
    if new.object_at is null then new.object_at := reconcile.created_at(new.resource, new.id); end if;
    return new;
end
$$;

create or replace trigger doubts_opened before insert on reconcile.doubts
  for each row execute function reconcile.keep_recheck();

create or replace trigger doubts_changed before update on reconcile.doubts
  for each row when ((old.state = 'settled') <> (new.state = 'settled')) execute function reconcile.keep_recheck();
