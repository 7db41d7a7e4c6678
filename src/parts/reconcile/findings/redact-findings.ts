import type { Knex } from "knex";
import { sqlArray } from "../../../platform/postgres/values.ts";
import { redacted } from "../../../platform/redaction.ts";
import { classifiedKeys, withoutPersonalField } from "../../../core/mirror/privacy/personal-data.ts";
import { mirrorResources } from "../../../core/mirror/resources.ts";
import { allColumns } from "../../../core/mirror/resources/resource.ts";
import { changeTimeFields, hidden } from "../compare/differences.ts";
import type { Difference, FindingRow } from "./findings.ts";

/** The fields of a finding's evidence whose values stay: all others may quote the service's answer. */
const keptEvidence = [
  "mode",
  "holds",
  "changed_at",
  "observed_at",
  "known_to_history",
  "events",
  "late_event",
  "late_received_at",
  "unknown_at_the_service_since",
];

/**
 * Differences without personal data. Findings keep no values of persons, but a card's last four digits and texts such
 * as the reason of a decline: only the parts of a value that survive an erasure stay. Unknown field names are left out,
 * since a merchant chooses them.
 */
export const impersonalDifferences = (differences: readonly Difference[]): Difference[] =>
  differences.map(({ field, service, mirror }) =>
    classifiedKeys.has(field) || isColumn(field)
      ? { field, service: impersonalValue(field, service), mirror: impersonalValue(field, mirror) }
      : { field: "another field", service: hidden, mirror: hidden },
  );

function impersonalValue(field: string, value: unknown): unknown {
  if (value === null || value === undefined || changeTimeFields.has(field)) return value ?? null;
  const kept = withoutPersonalField(field, value);
  return JSON.stringify(kept) === JSON.stringify(value) ? value : hidden;
}

/**
 * A finding without personal data: without notes, and without evidence that may quote the service's answer. A broken
 * rule compares figures, states and times, which stay.
 */
export function withoutPersonalEvidence<F extends Pick<FindingRow, "class" | "differences" | "evidence" | "ack_note">>(
  finding: F,
): F {
  return {
    ...finding,
    differences: finding.class === "identity" ? finding.differences : impersonalDifferences(finding.differences),
    evidence: Object.fromEntries(Object.entries(finding.evidence).filter(([name]) => keptEvidence.includes(name))),
    ack_note: finding.ack_note === null ? null : redacted,
  };
}

const isColumn = (field: string): boolean =>
  mirrorResources.some((resource) => Object.hasOwn(allColumns(resource), field)) || changeTimeFields.has(field);

/**
 * SQL that removes the values from a list of differences. Names of known fields stay. Of a broken invariant everything
 * stays: figures, states, times and ids.
 */
const withoutValues = (differences: string): string =>
  `(select coalesce(jsonb_agg(case when f.class = 'identity' then d
      else d || jsonb_build_object('service', hidden.value, 'mirror', hidden.value)
        || case when d->>'field' = any(kept.fields) then '{}' else jsonb_build_object('field', hidden.value) end
      end), '[]')
    from hidden, kept, jsonb_array_elements(${differences}) d)`;

const keptOnly = (evidence: string): string =>
  `(select coalesce(jsonb_object_agg(e.key, case when e.key = any(kept.keys) then e.value else hidden.value end), '{}')
    from hidden, kept, jsonb_each(coalesce(${evidence}, '{}')) e)`;

/** SQL that removes the note of an acknowledgement: it may name the customer. */
const withoutNote = (life: string): string =>
  `case when ${life}->>'ack_note' is null then '{}' else
     (select jsonb_build_object('ack_note', hidden.value) from hidden) end`;

/** SQL that does the same in each former life of a finding: a life is its time from opening to healing. */
const livesWithoutValues = (history: string): string =>
  `(select coalesce(jsonb_agg(h || ${withoutNote("h")} || jsonb_build_object(
      'differences', ${withoutValues("coalesce(h->'differences', '[]')")}, 'evidence', ${keptOnly("h->'evidence'")})), '[]')
    from jsonb_array_elements(${history}) h)`;

const given = `with hidden as (select cast(? as jsonb) as value),
  kept as (select ?::text[] as keys, ?::text[] as fields)`;
const bindings = [JSON.stringify(redacted), sqlArray(keptEvidence), sqlArray([...classifiedKeys])];
const theirs = "f.object_id = any(?::text[])";

/**
 * Removes personal data from the findings on these objects, in former lives and versions too: values of differences,
 * notes, and quoting evidence. Names of known fields and amounts at risk stay. Returns the number of findings.
 * Idempotent.
 */
export async function redactFindings(db: Knex, ids: readonly string[]): Promise<number> {
  const findings = await redactCurrent(db, ids);
  await redactVersions(db, ids);
  return findings;
}

/**
 * Takes the notes of acknowledgements out of findings on other objects, where one names the person: of now, of former
 * lives and of versions. Needs the erasure's transaction; idempotent. Returns the number of findings.
 */
export async function redactNotes(db: Knex, named: (text: string) => boolean): Promise<number> {
  const { rows } = await db.raw<{ rows: { id: string; note: string }[] }>(
    `with contents as (
       select f.id, f.ack_note as note, f.history from reconcile.findings f
       union all select v.finding, v.content->>'ack_note', v.content->'history' from reconcile.finding_versions v)
     select id, note from contents where note is not null
     union select c.id, h->>'ack_note' from contents c, jsonb_array_elements(coalesce(c.history, '[]')) h
     where h->>'ack_note' is not null`,
  );
  const ids = [...new Set(rows.flatMap(({ id, note }) => (note !== redacted && named(note) ? [id] : [])))];
  if (ids.length === 0) return 0;
  const lives = (history: string): string =>
    `(select coalesce(jsonb_agg(h || ${withoutNote("h")}), '[]')
      from jsonb_array_elements(coalesce(${history}, '[]')) h)`;
  await db.raw(
    `with hidden as (select cast(? as jsonb) as value) update reconcile.findings f set
       history = ${lives("f.history")},
       ack_note = case when f.ack_note is not null then (select value #>> '{}' from hidden) end
     where f.id = any(?::bigint[])`,
    [JSON.stringify(redacted), sqlArray(ids)],
  );
  await db.raw(
    `with hidden as (select cast(? as jsonb) as value) update reconcile.finding_versions v set
       content = v.content || ${withoutNote("v.content")} || jsonb_build_object(
         'history', ${lives("v.content->'history'")})
     where v.finding = any(?::bigint[])`,
    [JSON.stringify(redacted), sqlArray(ids)],
  );
  return ids.length;
}

/** The numbers of the findings on these objects. One statement. */
export async function findingsOn(db: Knex, ids: readonly string[]): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { id: string }[] }>(`select f.id from reconcile.findings f where ${theirs}`, [
    sqlArray(ids),
  ]);
  return rows.map(({ id }) => id);
}

async function redactCurrent(db: Knex, ids: readonly string[]): Promise<number> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `${given} update reconcile.findings f set
       differences = ${withoutValues("f.differences")}, history = ${livesWithoutValues("f.history")},
       evidence = ${keptOnly("f.evidence")},
       ack_note = case when f.ack_note is not null then (select value #>> '{}' from hidden) end
     where ${theirs}`,
    [...bindings, sqlArray(ids)],
  );
  return rowCount;
}

async function redactVersions(db: Knex, ids: readonly string[]): Promise<void> {
  await db.raw(
    `${given} update reconcile.finding_versions v set
       content = v.content || ${withoutNote("v.content")} || jsonb_build_object(
         'differences', ${withoutValues("v.content->'differences'")},
         'history', ${livesWithoutValues("v.content->'history'")},
         'evidence', ${keptOnly("v.content->'evidence'")})
     from reconcile.findings f where f.id = v.finding and ${theirs}`,
    [...bindings, sqlArray(ids)],
  );
}
