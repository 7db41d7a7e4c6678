create or replace function reports.refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'reports.% is append-only (% refused): what was prepared or closed never changes', tg_table_name, lower(tg_op)
      using errcode = 'restrict_violation';
end
$$;

create or replace trigger closes_append_only before update or delete or truncate on reports.closes
  for each statement execute function reports.refuse_change();

create or replace trigger closed_reports_append_only before update or delete or truncate on reports.closed_reports
  for each statement execute function reports.refuse_change();

create or replace trigger closed_rows_append_only before update or delete or truncate on reports.closed_rows
  for each statement execute function reports.refuse_change();

create or replace trigger closed_movements_append_only before update or delete or truncate on reports.closed_movements
  for each statement execute function reports.refuse_change();

create or replace trigger closed_evidence_append_only before update or delete or truncate on reports.closed_evidence
  for each statement execute function reports.refuse_change();

-- A close's own row is written last. What comes later would make its seal a broken one. Two transactions that write into
-- one close meet at its row in reports.closings: the second waits for the end of the first, and then sees its seal. With
-- a snapshot of before, as at REPEATABLE READ, it fails (40001).
create or replace function reports.refuse_addition() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
begin
  insert into reports.closings (close) select distinct a.close from added a order by 1 on conflict do nothing;
  if exists (select from (select distinct close from added) a join reports.closes c on c.id = a.close) then
    raise exception 'reports.% is append-only: what was closed never grows', tg_table_name
      using errcode = 'restrict_violation';
  end if;
  return null;
end
$$;

-- What of a close is not for its writer to choose: its number and place in the chain, the bounds of its month, that the
-- month was over, the time of the close, the hash of its manifest, and a PASS that the ledger does not give.
create or replace function reports.check_close() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
declare
  former reports.closes;
  wrong text;
begin
  insert into reports.closings (close) values (new.id) on conflict do nothing;
  select * into former from reports.closes c order by c.month desc limit 1;
  wrong := case
    when new.id is distinct from 1 + coalesce((select max(c.id) from reports.closes c), 0) then 'its number'
    when new.month is distinct from (former.month + interval '1 month')::date and former.id is not null
      then 'its month, which is not the next one'
    when new.time_zone <> former.time_zone then 'its time zone, which is not that of the last close'
    when new.previous_sha256 is distinct from former.sha256 then 'the hash of the close before'
    when new.from_at <> reports.day_start(new.month, new.time_zone)
      or new.to_at <> reports.day_start((new.month + interval '1 month')::date, new.time_zone) then 'its bounds'
    when new.as_of < new.to_at then 'its time, at which the month was not over'
    when new.as_of > transaction_timestamp() or new.closed_at not between transaction_timestamp() and clock_timestamp()
      then 'its time, which is not now'
    when new.sha256_covers <> 'everything' or new.sha256 <> encode(sha256(convert_to(new.manifest, 'UTF8')), 'hex')
      then 'its hash, which is not that of its manifest'
    when new.verdict = 'PASS' and (
      select v.verdict from reports.verdict(new.from_at, new.to_at, new.as_of) v) <> 'PASS'
      then 'its verdict, which the ledger does not give'
    end;
  if wrong is not null then
    raise exception 'the close of % is refused for %', to_char(new.month, 'YYYY-MM'), wrong
      using errcode = 'restrict_violation';
  end if;
  return new;
end
$$;

create or replace trigger closes_in_order before insert on reports.closes
  for each row execute function reports.check_close();

create or replace trigger closed_reports_complete after insert on reports.closed_reports
  referencing new table as added for each statement execute function reports.refuse_addition();

create or replace trigger closed_rows_complete after insert on reports.closed_rows
  referencing new table as added for each statement execute function reports.refuse_addition();

create or replace trigger closed_movements_complete after insert on reports.closed_movements
  referencing new table as added for each statement execute function reports.refuse_addition();

create or replace trigger closed_evidence_complete after insert on reports.closed_evidence
  referencing new table as added for each statement execute function reports.refuse_addition();

create or replace trigger preparations_append_only
  before delete or truncate
    or update of id, month, time_zone, as_of, prepared_at, prepared_by, account_id, verdict, accounts, reports, booked,
      movements_mark on reports.preparations
  for each statement execute function reports.refuse_change();

-- What is prepared is not sealed yet: an erasure takes a reason out that names the person.
create or replace trigger preparations_reason before update of reason on reports.preparations
  for each statement when (current_setting('tallyhook.erasure', true) is distinct from 'on'
    -- Anybody can make that setting. Who may remove rows is the owner.
    or not has_table_privilege('reports.preparations', 'delete'))
  execute function reports.refuse_change();

create or replace trigger preparation_ends_append_only before update or delete or truncate on reports.preparation_ends
  for each statement execute function reports.refuse_change();
