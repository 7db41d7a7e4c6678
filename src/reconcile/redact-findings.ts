import type { Knex } from "knex";
import { sqlArray } from "../platform/sql-array.ts";
import { redacted } from "../mirror/erasure/personal-data.ts";

/** SQL for a list of differences without the values: fields stay. */
const withoutValues = (differences: string): string =>
  `(select coalesce(jsonb_agg(d || jsonb_build_object('service', hidden.value, 'mirror', hidden.value)), '[]')
    from hidden, jsonb_array_elements(${differences}) d)`;

/** The same in each former life of a finding. */
const livesWithoutValues = (history: string): string =>
  `(select coalesce(jsonb_agg(h || jsonb_build_object('differences', ${withoutValues("h->'differences'")})), '[]')
    from jsonb_array_elements(${history}) h)`;

const hidden = "with hidden as (select cast(? as jsonb) as value)";
const theirs = "f.object_id = any(?::text[]) and f.class <> 'identity'";

/**
 * Takes the values out of the differences that were found on these objects, in former lives and former states of the
 * findings too: fields and amounts at risk stay. Gives back how many findings there were. Idempotent.
 */
export async function redactFindings(db: Knex, ids: readonly string[]): Promise<number> {
  const findings = await redactCurrent(db, ids);
  await redactVersions(db, ids);
  return findings;
}

async function redactCurrent(db: Knex, ids: readonly string[]): Promise<number> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `${hidden} update reconcile.findings f set
       differences = ${withoutValues("f.differences")}, history = ${livesWithoutValues("f.history")}
     where ${theirs}`,
    [JSON.stringify(redacted), sqlArray(ids)],
  );
  return rowCount;
}

async function redactVersions(db: Knex, ids: readonly string[]): Promise<void> {
  await db.raw(
    `${hidden} update reconcile.finding_versions v set content = v.content || jsonb_build_object(
       'differences', ${withoutValues("v.content->'differences'")},
       'history', ${livesWithoutValues("v.content->'history'")})
     from reconcile.findings f where f.id = v.finding and ${theirs}`,
    [JSON.stringify(redacted), sqlArray(ids)],
  );
}
