import type { Knex } from "knex";
import { sqlArray } from "../../platform/postgres/values.ts";
import { mirrorResources } from "./resources.ts";

export interface WantedState {
  resource: string;
  id: string;
  /** In milliseconds: finer differences are in the hash. Null: the mirror's present state. */
  state: { group: string; at: Date; hash: string } | null;
}

/**
 * The contents of objects in the requested states, in their order. Where such a state is not in the history (an erasure
 * has changed it), or none is named, the mirror's present content. Null where the mirror has not seen the object itself
 * yet. As in the history, fields that are null are left out. An order has its items, which never change, and the retry
 * data of its last declined attempt up to this state. One or two statements.
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

interface FoundState {
  n: number;
  data: Record<string, unknown>;
  /** Orders only. */
  items: readonly unknown[] | null;
  dunning: Record<string, unknown> | null;
}

/** `items` and `dunning` of the order `o`; its retries as of all states dated before `until`. */
const orderParts = (until: string): string =>
  `o.items, case when o.dunning_version <> '' then (
     select d.data from mirror.versions d
     where d.resource = 'order.dunning' and d.id = o.id and d.source_updated_at < ${until}
     order by d.source_updated_at desc, d.data->'attempt_count' desc nulls last limit 1) end as dunning`;

const contentsOf = (rows: readonly FoundState[]): Contents =>
  new Map(rows.map(({ n, data, items, dunning }) => [n, withParts(data, items, dunning)]));

function withParts(
  data: FoundState["data"],
  items: FoundState["items"],
  dunning: FoundState["dunning"],
): Record<string, unknown> {
  const whole = { ...data };
  if (items !== null) whole["items"] = items;
  for (const key of ["attempt_count", "next_retry_at"]) {
    if (dunning?.[key] !== undefined) whole[key] = dunning[key];
  }
  return whole;
}

async function readHistory(db: Knex, wanted: readonly WantedState[]): Promise<Contents> {
  const named = wanted.flatMap(({ id, state }, n) =>
    state !== null && contentGroups.has(state.group) ? [{ n, id, state }] : [],
  );
  if (named.length === 0) return new Map();
  const { rows } = await db
    .raw<{ rows: FoundState[] }>(
      `select w.n, v.data, ${orderParts("w.at + interval '1 millisecond'")}
     from unnest(?::int[], ?::text[], ?::text[], ?::timestamptz[], ?::text[]) as w(n, state_group, id, at, hash)
     cross join lateral (
       select data from mirror.versions
       where resource = w.state_group and id = w.id and content_hash = w.hash
         and source_updated_at >= w.at and source_updated_at < w.at + interval '1 millisecond'
       order by source_updated_at desc, twin limit 1
     ) v
     left join mirror.orders o on o.id = w.id and w.state_group = 'order'`,
      [
        sqlArray(named.map(({ n }) => n)),
        sqlArray(named.map(({ state }) => state.group)),
        sqlArray(named.map(({ id }) => id)),
        sqlArray(named.map(({ state }) => state.at.toISOString())),
        sqlArray(named.map(({ state }) => state.hash)),
      ],
    )
    // Planning it costs more than running it.
    .options({ name: "mirror-states" });
  return contentsOf(rows);
}

/** The columns that hold the content of each table, the object's own first. */
const contents = mirrorResources.map(({ name, table, groups }) => ({
  name,
  table,
  groups: Object.entries(groups).flatMap(([group, { contentColumn: column, inHistory }]) =>
    column === undefined || !inHistory ? [] : [{ group, column }],
  ),
}));

/** The states of other groups show a part of an object only. */
const contentGroups = new Set(contents.flatMap(({ groups }) => groups.map(({ group }) => group)));

async function readRows(db: Knex, missing: readonly { n: number; want: WantedState }[]): Promise<Contents> {
  const selects = contents
    .filter(({ name }) => missing.some(({ want }) => want.resource === name))
    .map(({ name, table, groups }) => {
      const content = `coalesce(${groups.map(({ column }) => column).join(", ")})`;
      const parts = name === "order" ? orderParts("'infinity'") : "null::jsonb as items, null::jsonb as dunning";
      return `select w.n, ${content} as data, ${parts} from w join mirror.${table} o using (id)
              where w.resource = '${name}' and ${content} is not null`;
    });
  if (selects.length === 0) return new Map();
  const { rows } = await db.raw<{ rows: FoundState[] }>(
    `with w as materialized (select * from unnest(?::int[], ?::text[], ?::text[]) as w(n, resource, id))
     ${selects.join(" union all ")}`,
    [
      sqlArray(missing.map(({ n }) => n)),
      sqlArray(missing.map(({ want }) => want.resource)),
      sqlArray(missing.map(({ want }) => want.id)),
    ],
  );
  return contentsOf(rows);
}
