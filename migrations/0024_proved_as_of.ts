import type { Knex } from "knex";
import { verdict as formerVerdict } from "./0017_verdict_modes.ts";

const when = "coalesce(p_as_of, 'infinity')";

/**
 * What is proved, and what was as of a time. What a proof rests on is only added to: each state of a run is a row, a
 * slice and a recheck say when they began and ended to count.
 */
export async function up(db: Knex): Promise<void> {
  await db.raw(`
    alter table reconcile.runs add column rotation_nights smallint not null default 30;
    comment on column reconcile.runs.rotation_nights is
      'all history is read once in so many nights: for so long, and a day to spare, what this run read counts';
    comment on column reconcile.runs.finished_at is 'when it last ended; reconcile.run_states has each time';

    create table reconcile.run_states (
      id bigint generated always as identity primary key,
      run bigint not null references reconcile.runs (id) on delete cascade,
      recorded_at timestamptz not null default clock_timestamp(),
      state text not null,
      -- It came to its end: everything it ordered to be read again was, and what that showed was concluded.
      has_ended boolean not null
    );
    create index run_states_run on reconcile.run_states (run, recorded_at);
    comment on table reconcile.run_states is
      'Each state of each run, append-only: a run that is resumed has an end, then a state running, then another end.';
    insert into reconcile.run_states (run, recorded_at, state, has_ended)
      select r.id, coalesce(r.finished_at, r.started_at), r.state,
             r.state = 'complete' or r.state = 'incomplete' and r.error is null
      from reconcile.runs r order by r.id;

    -- By the database, since a run changes its state in several places and none may forget it.
    create function reconcile.keep_run_state() returns trigger language plpgsql as $$
      begin
        insert into reconcile.run_states (run, recorded_at, state, has_ended)
        values (new.id, case tg_op when 'INSERT' then coalesce(new.finished_at, clock_timestamp()) else clock_timestamp() end,
                new.state, new.state = 'complete' or new.state = 'incomplete' and new.error is null);
        return null;
      end $$;
    create trigger runs_opened after insert on reconcile.runs
      for each row execute function reconcile.keep_run_state();
    create trigger runs_changed after update on reconcile.runs
      for each row when ((old.state, old.error) is distinct from (new.state, new.error))
      execute function reconcile.keep_run_state();

    alter table reconcile.coverage add column completed_at timestamptz, add column revoked_at timestamptz;
    comment on column reconcile.coverage.completed_at is 'database clock: since then it counts as read to its end';
    comment on column reconcile.coverage.revoked_at is
      'database clock: since then it does not, since its list had left something out';
    update reconcile.coverage c set completed_at = coalesce(r.finished_at, r.started_at)
    from reconcile.runs r where r.id = c.run and c.state = 'complete';
    create function reconcile.keep_slice_times() returns trigger language plpgsql as $$
      begin
        if new.state = 'complete' then
          new.completed_at := coalesce(
            (select r.finished_at from reconcile.runs r where tg_op = 'INSERT' and r.id = new.run), clock_timestamp());
          new.revoked_at := null;
        elsif tg_op = 'UPDATE' then
          new.revoked_at := clock_timestamp();
        end if;
        return new;
      end $$;
    create trigger coverage_opened before insert on reconcile.coverage
      for each row when (new.state = 'complete') execute function reconcile.keep_slice_times();
    create trigger coverage_changed before update on reconcile.coverage
      for each row when (old.state <> new.state and 'complete' in (old.state, new.state))
      execute function reconcile.keep_slice_times();

    -- When an object was created, as the mirror has it; a chargeback as its order, or its transaction.
    create function reconcile.created_at(p_resource text, p_id text) returns timestamptz
    language sql stable as $$
      select min(known.created_at) from (
        select m.created_at from mirror.orders m where p_resource in ('order', 'chargeback') and m.id = p_id
        union all
        select m.created_at from mirror.transactions m where p_resource in ('transaction', 'chargeback') and m.id = p_id
        union all
        select m.created_at from mirror.subscriptions m where p_resource = 'subscription' and m.id = p_id
        union all
        select m.created_at from mirror.customers m where p_resource = 'customer' and m.id = p_id
      ) known
    $$;

    alter table reconcile.doubts
      add column recorded_at timestamptz not null default clock_timestamp(),
      add column settled_at timestamptz,
      add column object_at timestamptz;
    comment on column reconcile.doubts.recorded_at is 'database clock, as is settled_at';
    comment on column reconcile.doubts.object_at is
      'when the object was created, by the service''s clock: that moment is not proved; null: not known, and nothing is';
    update reconcile.doubts d set recorded_at = r.started_at,
           settled_at = case when d.state = 'settled' then coalesce(r.finished_at, r.started_at) end
    from reconcile.runs r where r.id = d.run;
    create function reconcile.keep_recheck() returns trigger language plpgsql as $$
      begin
        new.settled_at := case when new.state = 'settled' then clock_timestamp() end;
        if new.object_at is null then new.object_at := reconcile.created_at(new.resource, new.id); end if;
        return new;
      end $$;
    create trigger doubts_opened before insert on reconcile.doubts
      for each row execute function reconcile.keep_recheck();
    create trigger doubts_changed before update on reconcile.doubts
      for each row when ((old.state = 'settled') <> (new.state = 'settled')) execute function reconcile.keep_recheck();
    create index doubts_unsettled on reconcile.doubts (run) where settled_at is null;
    create index doubts_settled on reconcile.doubts (settled_at);
    create index doubts_unreadable on reconcile.doubts (run) where outcome in ('unreadable', 'not concluded');

    -- What was not known to be right: an object that waits to be read again, that could not be read, or whose run ended
    -- before it was (too much was missing at once). It is a hole in
    -- what its run and every earlier one proved, where it was created; a later run that lists it closes the hole. An open
    -- item that no list of the night can show is read by its id as a matter of course: nothing is suspected of it.
    create function reports.unproved_objects(p_as_of timestamptz default null)
    returns table (run bigint, resource text, hole tstzrange)
    language sql stable parallel safe as $$
      select d.run, d.resource, case when d.object_at is null then tstzrange(null, null)
             else tstzrange(date_trunc('milliseconds', d.object_at),
                            date_trunc('milliseconds', d.object_at) + interval '1 millisecond') end
      from (
        select o.* from reconcile.doubts o where o.settled_at is null
        union all
        select o.* from reconcile.doubts o where o.settled_at > p_as_of
        union all
        select o.* from reconcile.doubts o
        where o.outcome in ('unreadable', 'not concluded') and o.settled_at <= ${when}
      ) d
      where d.recorded_at <= ${when}
        and (d.why not in ('open_item', 'out_of_time') or d.outcome = 'unreadable' and d.settled_at <= ${when})
    $$;

    -- The one definition of what was read and proved; src/reconcile/coverage.ts asks it, too. A slice of a list counts
    -- when it shows every object of its bounds, was read to its end, and its run came to its end and left no object to be
    -- read again. bounds have holes (unproved_objects); walked has none, so that one object that cannot be read does not
    -- make every night read from there on.
    drop function reports.read_slices;
    create function reports.read_slices(p_as_of timestamptz default null)
    returns table (run bigint, slice integer, resource text, read_at timestamptz, bounds tstzrange, walked tstzrange,
                   fresh_until timestamptz)
    language sql stable parallel safe as $$
      with hole as materialized (
        select u.run, u.resource, u.hole from reports.unproved_objects(p_as_of) u
      )
      select c.run, c.slice, c.resource, c.read_at, coalesce(part.bounds, 'empty'),
             tstzrange(c.created_from, c.created_before), c.read_at + make_interval(days => r.rotation_nights + 1)
      from reconcile.runs r
      cross join lateral (
        select s.has_ended from reconcile.run_states s
        where s.run = r.id and s.recorded_at <= ${when} order by s.recorded_at desc, s.id desc limit 1
      ) last
      join reconcile.coverage c on c.run = r.id
      left join lateral (
        select unnest(tstzmultirange(tstzrange(c.created_from, c.created_before)) - coalesce((
          select range_agg(h.hole) from hole h where h.resource = c.resource and h.run >= c.run), '{}')) as bounds
      ) part on true
      where last.has_ended and c.is_closed and c.pages > 0 and c.read_at is not null
        and c.completed_at <= ${when} and (c.revoked_at is null or c.revoked_at > ${when})
        and not exists (select from reconcile.doubts d where d.run = r.id and d.settled_at is null and d.recorded_at <= ${when})
        and (p_as_of is null or not exists (
          select from reconcile.doubts d where d.run = r.id and d.settled_at > p_as_of and d.recorded_at <= p_as_of))
    $$;
  `);
  await datedFindings(db);
  await db.raw(verdict);
}

/** The columns of a finding that reports show. */
const shown = [
  "class identity severity resource object_id differences amount_at_risk_minor currency state first_seen healed_at",
  "cause history ack_by ack_at ack_note",
].flatMap((names) => names.split(" "));

function findingsChanged(columns: readonly string[]): string {
  const rowOf = (row: string) =>
    `(${[...columns.map((column) => `${row}.${column}`), `${row}.evidence->>'mode'`].join(", ")})`;
  return `
    create trigger findings_changed after update on reconcile.findings
      for each row when (${rowOf("old")} is distinct from ${rowOf("new")}) execute function reconcile.keep_finding();`;
}

/** What a finding is about has a time: a period that had ended by then has nothing to do with it. */
async function datedFindings(db: Knex): Promise<void> {
  await db.raw(`
    alter table reconcile.findings add column object_at timestamptz;
    comment on column reconcile.findings.object_at is
      'the earliest time of which it can falsify a figure, by the service''s clock: since when the object was there, or when '
      'the fact was due; null: not known, and every period is touched';
    alter table reconcile.findings disable trigger findings_changed;
    update reconcile.findings f set object_at =
      case when f.class = 'endpoint' then f.first_seen else reconcile.created_at(f.resource, f.object_id) end;
    drop trigger findings_changed on reconcile.findings;

    -- Where whoever found it does not know better.
    create function reconcile.date_finding() returns trigger language plpgsql as $$
      begin
        if new.object_at is null then
          new.object_at := reconcile.created_at(new.resource, new.object_id);
        end if;
        return new;
      end $$;
    create trigger findings_dated before insert or update of object_at on reconcile.findings
      for each row execute function reconcile.date_finding();
  `);
  await db.raw(findingsChanged([...shown, "object_at"]));
  await db.raw(
    findingLives({
      columns: ", mode text, object_at timestamptz",
      values: "f.evidence->>'mode', f.object_at",
    }),
  );
}

const findingLives = ({ columns, values }: { columns: string; values: string }) => `
  drop function reports.finding_lives(timestamptz);
  -- One unhealed or healed life of a finding: an earlier one is in its history.
  create function reports.finding_lives(p_as_of timestamptz default null)
  returns table (finding bigint, class text, identity text, severity text, resource text, object_id text,
                 differences jsonb, amount_at_risk bigint, currency text, first_seen timestamptz,
                 healed_at timestamptz, cause text, ack_by text, ack_note text${columns})
  language sql stable parallel safe as $$
    select f.id, f.class, f.identity, f.severity, f.resource, f.object_id, l.differences, f.amount_at_risk_minor,
           f.currency, l.first_seen, case when l.healed_at <= ${when} then l.healed_at end,
           l.cause, l.ack_by, l.ack_note, ${values}
    from (
      select n.* from reconcile.findings n where p_as_of is null
      union all
      select v.* from (
        select distinct on (k.finding) k.content from reconcile.finding_versions k
        where k.recorded_at <= p_as_of order by k.finding, k.recorded_at desc, k.id desc
      ) k cross join lateral jsonb_populate_record(null::reconcile.findings, k.content) v
    ) f
    cross join lateral (
      select f.differences, f.first_seen, f.healed_at, f.cause,
             case when f.ack_at <= ${when} then f.ack_by end as ack_by,
             case when f.ack_at <= ${when} then f.ack_note end as ack_note
      union all
      select h->'differences', (h->>'first_seen')::timestamptz, (h->>'healed_at')::timestamptz, h->>'cause',
             h->>'ack_by', h->>'ack_note'
      from jsonb_array_elements(f.history) h
    ) l
    where l.first_seen <= ${when}
  $$;`;

const verdict = `
    -- Whether everything created before p_to was read and proved, not longer ago than the rotation takes, and what is
    -- found and neither healed nor acknowledged. A balance needs all that came before it, so that both look back to the
    -- first record; what is about a later time touches no figure of the period.
    create or replace function reports.verdict(p_from timestamptz, p_to timestamptz, p_as_of timestamptz default null)
    returns table (verdict text, coverage_percent numeric, read_until timestamptz, last_run bigint, open_findings bigint,
                   open_warnings bigint)
    language sql stable as $$
      with fresh as (
        select s.resource, s.bounds from reports.read_slices(p_as_of) s
        where s.fresh_until > coalesce(p_as_of, now())
      ), start as (
        select least(p_from, min(lower(f.bounds)), min(upper(f.bounds))) as at from fresh f
      ), per_resource as (
        select k.resource, tstzmultirange(tstzrange(s.at, greatest(s.at, p_to))) as wanted,
               coalesce((select range_agg(f.bounds) from fresh f where f.resource = k.resource), '{}') as got
        from start s cross join unnest(array['order', 'transaction', 'subscription', 'customer']) as k(resource)
      ), seconds as (
        select p.resource, tstzrange(null, p_to) <@ p.got as is_whole,
               (select sum(extract(epoch from upper(r) - lower(r))) from unnest(p.wanted) r) as wanted,
               (select sum(extract(epoch from upper(r) - lower(r))) from unnest(p.wanted * p.got) r) as got,
               (select coalesce(upper(r), p_to) from unnest(p.got) r where lower_inf(r)) as until
        from per_resource p
      ), coverage as (
        select bool_and(s.is_whole) as is_whole,
               min(trunc(100 * coalesce(s.got, 0) / nullif(s.wanted, 0), 2)) as percent,
               case when bool_and(s.until is not null) then min(least(s.until, p_to)) end as until
        from seconds s
      ), unhealed as (
        select f.severity in ('critical', 'high')
               and not (f.class = 'identity' and coalesce(f.mode, 'enforce') <> 'enforce') as is_serious
        from reports.finding_lives(p_as_of) f
        where f.healed_at is null and f.ack_by is null and (f.object_at is null or f.object_at < p_to)
      ), found as (
        select count(*) filter (where is_serious) as serious, count(*) filter (where not is_serious) as warnings
        from unhealed
      )
      select case when c.is_whole is not true then 'INCOMPLETE' when f.serious > 0 then 'FAIL' else 'PASS' end,
             coalesce(c.percent, 0.00), c.until,
             (select max(r.run) from reconcile.run_states r where r.state <> 'running' and r.recorded_at <= ${when}),
             f.serious, f.warnings
      from coverage c cross join found f
    $$;`;

export async function down(db: Knex): Promise<void> {
  await db.raw(findingLives({ columns: ", mode text", values: "f.evidence->>'mode'" }));
  await db.raw(`
    drop trigger findings_changed on reconcile.findings;
    drop trigger findings_dated on reconcile.findings;
    drop function reconcile.date_finding();
    alter table reconcile.findings drop column object_at;
    ${findingsChanged(shown)}
    drop function reports.read_slices;
    create function reports.read_slices(p_as_of timestamptz default null)
    returns table (run bigint, slice integer, resource text, read_at timestamptz, bounds tstzrange)
    language sql stable parallel safe as $$
      select c.run, c.slice, c.resource, c.read_at, tstzrange(c.created_from, c.created_before)
      from reconcile.coverage c join reconcile.runs r on r.id = c.run
      where c.state = 'complete' and c.is_closed and c.pages > 0 and c.read_at is not null
        and (p_as_of is null or r.finished_at <= p_as_of)
    $$;
    drop trigger doubts_changed on reconcile.doubts;
    drop trigger doubts_opened on reconcile.doubts;
    drop trigger coverage_changed on reconcile.coverage;
    drop trigger coverage_opened on reconcile.coverage;
    drop trigger runs_changed on reconcile.runs;
    drop trigger runs_opened on reconcile.runs;
    drop function reports.unproved_objects, reconcile.keep_recheck, reconcile.keep_slice_times,
                  reconcile.keep_run_state, reconcile.created_at;
    alter table reconcile.doubts drop column recorded_at, drop column settled_at, drop column object_at;
    alter table reconcile.coverage drop column completed_at, drop column revoked_at;
    drop table reconcile.run_states;
    alter table reconcile.runs drop column rotation_nights;
  `);
  await db.raw(formerVerdict("f.class = 'identity' and coalesce(f.mode, 'enforce') <> 'enforce'"));
}
