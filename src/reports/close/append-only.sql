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

-- A close's own row is written last. What comes later would make its seal a broken one.
create or replace function reports.refuse_addition() returns trigger language plpgsql as $$
begin
  if exists (select from (select distinct close from added) a join reports.closes c on c.id = a.close) then
    raise exception 'reports.% is append-only: what was closed never grows', tg_table_name
      using errcode = 'restrict_violation';
  end if;
  return null;
end
$$;

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
