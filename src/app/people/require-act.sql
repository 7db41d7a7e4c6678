-- The dashboard's role changes these tables only in transactions that record a person's act (recordAct): a process that
-- was taken over can put any name into the record, but leaves no change without one. Checked at the end of the
-- transaction, as some acts are recorded after their changes. tg_argv: the kind of the act's subject, and the column
-- with its id; an act that names the thing among its values counts too, as a rotation names the secrets. Without
-- arguments any act will do. session_user is who logged in.
create or replace function people.require_act() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
declare
  kind constant text := tg_argv[0];
  about constant text := to_jsonb(case when tg_op = 'DELETE' then old else new end) ->> tg_argv[1];
begin
  if exists (
    select from people.audit a
    where a.at = transaction_timestamp() and a.login = session_user
      and (kind is null or a.subject_kind = kind and a.subject_id = about
           or about in (a.before ->> kind, a.after ->> kind))
  ) then
    return null;
  end if;
  raise exception 'the role % changes %.% only together with the record of an act about it', session_user,
    tg_table_schema, tg_table_name
    using errcode = 'restrict_violation', hint = 'Insert into people.audit in the same transaction.';
end
$$;

-- The role that may read the record but not delete from it is the dashboard's. The owner does the work of every
-- process.
create constraint trigger accounts_with_act
  after insert or update of email, roles, password_hash, totp_key_id, totp_ciphertext, issuer, subject, disabled_at
  on people.accounts
  deferrable initially deferred for each row
  when (has_table_privilege(session_user, 'people.audit'::regclass, 'select')
    and not has_table_privilege(session_user, 'people.audit'::regclass, 'delete'))
  execute function people.require_act('account', 'email');

create constraint trigger sessions_with_act after insert on people.sessions
  deferrable initially deferred for each row
  when (has_table_privilege(session_user, 'people.audit'::regclass, 'select')
    and not has_table_privilege(session_user, 'people.audit'::regclass, 'delete'))
  execute function people.require_act();

create constraint trigger secrets_with_act after insert or update of ciphertext, key_id, not_after, retired_at
  on receiver.secrets
  deferrable initially deferred for each row
  when (has_table_privilege(session_user, 'people.audit'::regclass, 'select')
    and not has_table_privilege(session_user, 'people.audit'::regclass, 'delete'))
  execute function people.require_act('secret', 'id');

create constraint trigger endpoints_with_act after insert or update on reconcile.endpoints
  deferrable initially deferred for each row
  when (has_table_privilege(session_user, 'people.audit'::regclass, 'select')
    and not has_table_privilege(session_user, 'people.audit'::regclass, 'delete'))
  execute function people.require_act('endpoint', 'id');

create constraint trigger run_orders_with_act after insert or update on reconcile.run_orders
  deferrable initially deferred for each row
  when (has_table_privilege(session_user, 'people.audit'::regclass, 'select')
    and not has_table_privilege(session_user, 'people.audit'::regclass, 'delete'))
  execute function people.require_act('run-order', 'id');

create constraint trigger handlers_with_act after update on dispatch.handlers
  deferrable initially deferred for each row
  when (has_table_privilege(session_user, 'people.audit'::regclass, 'select')
    and not has_table_privilege(session_user, 'people.audit'::regclass, 'delete'))
  execute function people.require_act('handler', 'name');

create constraint trigger runs_with_act after update or delete on dispatch.runs
  deferrable initially deferred for each row
  when (has_table_privilege(session_user, 'people.audit'::regclass, 'select')
    and not has_table_privilege(session_user, 'people.audit'::regclass, 'delete'))
  execute function people.require_act('handler', 'handler');

create constraint trigger silences_with_act after insert or update on alerts.silences
  deferrable initially deferred for each row
  when (has_table_privilege(session_user, 'people.audit'::regclass, 'select')
    and not has_table_privilege(session_user, 'people.audit'::regclass, 'delete'))
  execute function people.require_act('silence', 'id');

-- A heal ends and raises alerts as well.
create constraint trigger alerts_with_act after insert or update on alerts.alerts
  deferrable initially deferred for each row
  when (has_table_privilege(session_user, 'people.audit'::regclass, 'select')
    and not has_table_privilege(session_user, 'people.audit'::regclass, 'delete'))
  execute function people.require_act();

create constraint trigger outbox_with_act after insert or update on alerts.outbox
  deferrable initially deferred for each row
  when (has_table_privilege(session_user, 'people.audit'::regclass, 'select')
    and not has_table_privilege(session_user, 'people.audit'::regclass, 'delete'))
  execute function people.require_act();

create constraint trigger digest_items_with_act after delete on alerts.digest_items
  deferrable initially deferred for each row
  when (has_table_privilege(session_user, 'people.audit'::regclass, 'select')
    and not has_table_privilege(session_user, 'people.audit'::regclass, 'delete'))
  execute function people.require_act();

create constraint trigger storm_items_with_act after delete on alerts.storm_items
  deferrable initially deferred for each row
  when (has_table_privilege(session_user, 'people.audit'::regclass, 'select')
    and not has_table_privilege(session_user, 'people.audit'::regclass, 'delete'))
  execute function people.require_act();
