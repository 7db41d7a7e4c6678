-- A trigger, since a run changes its state in several places and none may forget to record it. It has the owner's
-- rights: proofs as of a time rest on when a run ended, so no role may add a state by itself. Only the owner may set
-- the end of a run that is written as a whole.
create or replace function reconcile.keep_run_state() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
begin
    insert into reconcile.run_states (run, recorded_at, state, has_ended)
    values (new.id,
            case when tg_op = 'INSERT' and has_table_privilege(session_user, 'reconcile.run_states', 'insert')
              then coalesce(new.finished_at, clock_timestamp()) else clock_timestamp() end,
            new.state, new.state = 'complete' or new.state = 'incomplete' and new.error is null);
    return null;
end
$$;

create or replace trigger runs_opened after insert on reconcile.runs
  for each row execute function reconcile.keep_run_state();

create or replace trigger runs_changed after update on reconcile.runs
  for each row when ((old.state, old.error) is distinct from (new.state, new.error))
  execute function reconcile.keep_run_state();
