import type { Knex } from "knex";
import { sqlArray } from "../platform/postgres/values.ts";
import { mirrorResources } from "./resources.ts";

/** An object, and the state of it that is wanted. */
export interface WantedState {
  resource: string;
  id: string;
  /** In milliseconds: what is finer is told apart by the hash. Null: as the mirror has it now. */
  state: { group: string; at: Date; hash: string } | null;
}

/**
 * The contents of objects in the states that are asked for, in their order. Where such a state is not in the history
 * (an erasure has changed it), or none is named, as the mirror has the object now. Null where the mirror has not seen
 * the object itself yet. As in the history, fields that are null are left out. One or two statements.
 */
export async function readStates(
  db: Knex,
  wanted: readonly WantedState[],
): Promise<(Record<string, unknown> | null)[]> {
  const found = await readHistory(db, wanted);
  const missing = wanted.flatMap((want, n) => (found.has(n) ? [] : [{ n, want }]));
  if (missing.length > 0) {
    for (const [n, content] of await readRows(db, missing)) found.set(n, content);
  }
  return wanted.map(({ id }, n) => {
    const content = found.get(n);
    return content === undefined ? null : { ...content, id };
  });
}

type Contents = Map<number, Record<string, unknown>>;

async function readHistory(db: Knex, wanted: readonly WantedState[]): Promise<Contents> {
  const named = wanted.flatMap(({ id, state }, n) =>
    state !== null && contentGroups.has(state.group) ? [{ n, id, state }] : [],
  );
  if (named.length === 0) return new Map();
  const { rows } = await db.raw<{ rows: { n: number; data: Record<string, unknown> }[] }>(
    `select w.n, v.data
     from unnest(?::int[], ?::text[], ?::text[], ?::timestamptz[], ?::text[]) as w(n, state_group, id, at, hash)
     cross join lateral (
       select data from mirror.versions
       where resource = w.state_group and id = w.id and content_hash = w.hash
         and source_updated_at >= w.at and source_updated_at < w.at + interval '1 millisecond'
       order by source_updated_at desc, twin limit 1
     ) v`,
    [
      sqlArray(named.map(({ n }) => n)),
      sqlArray(named.map(({ state }) => state.group)),
      sqlArray(named.map(({ id }) => id)),
      sqlArray(named.map(({ state }) => state.at.toISOString())),
      sqlArray(named.map(({ state }) => state.hash)),
    ],
  );
  return new Map(rows.map(({ n, data }) => [n, data]));
}

/** What holds the content of each table, the object's own first. */
const contents = mirrorResources.map(({ name, table, groups }) => ({
  name,
  table,
  groups: Object.entries(groups).flatMap(([group, { contentColumn: column, inHistory }]) =>
    column === undefined || !inHistory ? [] : [{ group, column }],
  ),
}));

/** The states of other groups show a part of an object only. */
const contentGroups = new Set(contents.flatMap(({ groups }) => groups.map(({ group }) => group)));

async function readRows(
  db: Knex,
  missing: readonly { n: number; want: WantedState }[],
): Promise<Contents> {
  const selects = contents
    .filter(({ name }) => missing.some(({ want }) => want.resource === name))
    .map(({ name, table, groups }) => {
      const content = `coalesce(${groups.map(({ column }) => column).join(", ")})`;
      return `select w.n, ${content} as data from w join mirror.${table} m using (id)
              where w.resource = '${name}' and ${content} is not null`;
    });
  if (selects.length === 0) return new Map();
  const { rows } = await db.raw<{ rows: { n: number; data: Record<string, unknown> }[] }>(
    `with w as materialized (select * from unnest(?::int[], ?::text[], ?::text[]) as w(n, resource, id))
     ${selects.join(" union all ")}`,
    [
      sqlArray(missing.map(({ n }) => n)),
      sqlArray(missing.map(({ want }) => want.resource)),
      sqlArray(missing.map(({ want }) => want.id)),
    ],
  );
  return new Map(rows.map(({ n, data }) => [n, data]));
}
