import type { Knex } from "knex";
import { sqlArray } from "../platform/sql-array.ts";
import { redacted } from "../mirror/erasure/personal-data.ts";

/**
 * Takes the values out of the differences that were found on these objects, in former lives of the findings too:
 * fields and amounts at risk stay. One statement; gives back how many findings there were. Idempotent.
 */
export async function redactFindings(db: Knex, ids: readonly string[]): Promise<number> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `with hidden as (select cast(? as jsonb) as value)
     update reconcile.findings f set
       differences = (
         select coalesce(jsonb_agg(d || jsonb_build_object('service', hidden.value, 'mirror', hidden.value)), '[]')
         from hidden, jsonb_array_elements(f.differences) d),
       history = (
         select coalesce(jsonb_agg(h || jsonb_build_object('differences', (
           select coalesce(jsonb_agg(d || jsonb_build_object('service', hidden.value, 'mirror', hidden.value)), '[]')
           from hidden, jsonb_array_elements(h->'differences') d))), '[]')
         from jsonb_array_elements(f.history) h)
     where f.object_id = any(?::text[]) and f.class <> 'identity'`,
    [JSON.stringify(redacted), sqlArray(ids)],
  );
  return rowCount;
}
