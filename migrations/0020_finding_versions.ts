import type { Knex } from "knex";
import { verdict } from "./0017_verdict_modes.ts";

/** One unhealed or healed life of a finding: an earlier one is in its history. `findings`: the rows to take them from. */
const findingLives = (parts: { columns: string; findings: string; mode: string }) => `
  drop function reports.finding_lives(timestamptz);
  create function reports.finding_lives(p_as_of timestamptz default null)
  returns table (finding bigint, class text, identity text, severity text, resource text, object_id text,
                 differences jsonb, amount_at_risk bigint, currency text, first_seen timestamptz,
                 healed_at timestamptz, cause text, ack_by text, ack_note text${parts.columns})
  language sql stable parallel safe as $$
    select f.id, f.class, f.identity, f.severity, f.resource, f.object_id, l.differences, f.amount_at_risk_minor,
           f.currency, l.first_seen, case when l.healed_at <= coalesce(p_as_of, 'infinity') then l.healed_at end,
           l.cause, l.ack_by, l.ack_note${parts.mode}
    from (${parts.findings}) f
    cross join lateral (
      select f.differences, f.first_seen, f.healed_at, f.cause,
             case when f.ack_at <= coalesce(p_as_of, 'infinity') then f.ack_by end as ack_by,
             case when f.ack_at <= coalesce(p_as_of, 'infinity') then f.ack_note end as ack_note
      union all
      select h->'differences', (h->>'first_seen')::timestamptz, (h->>'healed_at')::timestamptz, h->>'cause',
             h->>'ack_by', h->>'ack_note'
      from jsonb_array_elements(f.history) h
    ) l
    where l.first_seen <= coalesce(p_as_of, 'infinity')
  $$;`;

/** Each state of a finding that reports show is kept, so that a report as of a time says for ever what was known then. */
export async function up(db: Knex): Promise<void> {
  const shown = [
    "class identity severity resource object_id differences amount_at_risk_minor currency state first_seen healed_at",
    "cause history ack_by ack_at ack_note",
  ].flatMap((names) => names.split(" "));
  const rowOf = (row: string) =>
    `(${[...shown.map((column) => `${row}.${column}`), `${row}.evidence->>'mode'`].join(", ")})`;
  await db.raw(`
    create table reconcile.finding_versions (
      id bigint generated always as identity primary key,
      finding bigint not null references reconcile.findings (id) on delete cascade,
      recorded_at timestamptz not null default clock_timestamp(),
      -- The whole row, as it was from then on.
      content jsonb not null
    );
    create index finding_versions_finding on reconcile.finding_versions (finding, recorded_at);
    insert into reconcile.finding_versions (finding, recorded_at, content)
      select f.id, f.first_seen, to_jsonb(f) from reconcile.findings f order by f.id;

    -- By the database, since findings are written in several places and none may forget it.
    create function reconcile.keep_finding() returns trigger language plpgsql as $$
      begin
        insert into reconcile.finding_versions (finding, content) values (new.id, to_jsonb(new));
        return null;
      end $$;
    create trigger findings_opened after insert on reconcile.findings
      for each row execute function reconcile.keep_finding();
    create trigger findings_changed after update on reconcile.findings
      for each row when (${rowOf("old")} is distinct from ${rowOf("new")}) execute function reconcile.keep_finding();
  `);
  await db.raw(
    findingLives({
      columns: ", mode text",
      mode: ", f.evidence->>'mode'",
      findings: `
        select n.* from reconcile.findings n where p_as_of is null
        union all
        select v.* from (
          select distinct on (k.finding) k.content from reconcile.finding_versions k
          where k.recorded_at <= p_as_of order by k.finding, k.recorded_at desc, k.id desc
        ) k cross join lateral jsonb_populate_record(null::reconcile.findings, k.content) v`,
    }),
  );
  await db.raw(verdict("f.class = 'identity' and coalesce(f.mode, 'enforce') <> 'enforce'"));
}

export async function down(db: Knex): Promise<void> {
  const mode = `select f2.evidence->>'mode' from reconcile.findings f2 where f2.id = f.finding`;
  await db.raw(verdict(`f.class = 'identity' and coalesce((${mode}), 'enforce') <> 'enforce'`));
  await db.raw(
    findingLives({ columns: "", mode: "", findings: "select n.* from reconcile.findings n" }),
  );
  await db.raw(`
    drop trigger findings_changed on reconcile.findings;
    drop trigger findings_opened on reconcile.findings;
    drop function reconcile.keep_finding();
    drop table reconcile.finding_versions;
  `);
}
