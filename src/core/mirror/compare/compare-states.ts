import type { Knex } from "knex";
import { redactErased } from "../privacy/erased-people.ts";
import { mirrorResources } from "../resources.ts";
import { type ColumnDefinition, type MirrorResource, type NamedGroup, namedGroups } from "../resources/resource.ts";
import type { GroupState, Resource } from "../snapshot.ts";
import { type GivenColumn, givenColumns, givenRows } from "../write/upsert-statement.ts";
import { type TableRow, byId, rowBindings, winnersAmong } from "../write/write-rows.ts";
import { equalityTest, readStoredRows, storedRowStatement } from "./stored-rows.ts";

export interface CompareStatement {
  sql: string;
  given: readonly GivenColumn[];
}

/** Represents a group's whole content in a list of differing columns. */
export const contentDiffers = "(content)";

/**
 * One statement that compares states with the stored rows, column by column and by whole content. It returns only rows
 * that are missing or differ, so nothing for an equal page. Read-only.
 *
 * It compares every group of fields that is given. A group that no answer of the service shows (`order.dunning`) is
 * never given, and so never compared. A column computed from several groups (`computed`) must equal what the stored
 * groups yield, which finds columns edited by hand. It must also equal the part that the service shows (`shown`).
 * Versions are compared by their time alone: a different time of reading is no difference. For orders, shortened (the
 * whole is in test/mirror/__sql__/orders.compare.sql):
 *
 *     select r.id, t.id is not null as found,
 *       case when r.version <> '' and t.id is not null then array_remove(array[
 *         case when (t.version <> '' and t.total is distinct from r.total) then 'total' end, …
 *       ]::text[], null) end as version_differing, …
 *     from given r left join mirror.orders t on t.id = r.id
 *     where r.winner and (t.id is null or (r.version <> '' and (t.version = '' or … t.total is distinct from …)) …)
 */
function compareStatement(resource: MirrorResource): CompareStatement {
  const groups = namedGroups(resource);
  const given = givenColumns(resource);
  const parts = groups.map((group) => ({ group, checks: checksOf(resource, group) }));
  const sql = `
    with ${givenRows(resource)}
    select r.id, t.id is not null as found, ${parts
      .map(({ group, checks }) => `${differing(group, checks)} as ${group.prefix}differing`)
      .join(", ")}, to_jsonb(t) as stored
    from given r left join mirror.${resource.table} t on t.id = r.id
    where r.winner and (t.id is null or ${parts
      .map(({ group: { versionColumn: v }, checks }) => {
        const any = checks.map(({ condition }) => condition).join(" or ");
        return `(r.${v} <> '' and (t.${v} = '' or ${any}))`;
      })
      .join(" or ")})`;
  return { sql, given };
}

interface Check {
  name: string;
  condition: string;
}

const differs = (column: string, shown = `r.${column}`, stored = `t.${column}`): Check => ({
  name: column,
  condition: `${stored} is distinct from ${shown}`,
});

/** A text that was stored whole, before its column was cut, is no difference. */
const columnDiffers = (column: string, { maxLength }: Pick<ColumnDefinition, "maxLength">): Check =>
  maxLength === undefined ? differs(column) : differs(column, `r.${column}`, `left(t.${column}, ${maxLength})`);

function checksOf(resource: MirrorResource, group: NamedGroup): Check[] {
  const { versionColumn: v, prefix, contentColumn } = group;
  const isCore = group.group === resource.name;
  // A group that was never seen here has no values to compare; only columns set by another group can differ.
  const seen = `t.${v} <> ''`;
  const own = Object.entries(group.columns).map(([column, of]) => columnDiffers(column, of));
  const rest: Check[] = [
    ...(contentColumn === undefined ? [] : [{ ...differs(contentColumn, `r.${prefix}content`), name: contentDiffers }]),
    ...(isCore
      ? [differs("source_updated_at", `r.${prefix}at`), { name: v, condition: `left(t.${v}, 27) <> left(r.${v}, 27)` }]
      : []),
  ];
  return [
    ...[...own, ...rest].map(({ name, condition }) => ({
      name,
      condition: `(${seen} and ${condition})`,
    })),
    ...sharedChecks(resource, group),
    ...shownChecks(resource, group),
    ...computedChecks(resource),
  ];
}

/** Shared columns: the core owns them once it was seen here, another group until then. */
function sharedChecks({ shared, name: core, groups }: MirrorResource, { group }: NamedGroup): Check[] {
  const coreVersion = groups[core]?.versionColumn;
  if (shared === undefined || coreVersion === undefined) return [];
  return Object.entries(shared.columns).map(([column, of]) => {
    const differ = columnDiffers(column, of).condition;
    const unlessUnseen = `(t.${coreVersion} <> '' or t.${column} is not null)`;
    const condition =
      group === core
        ? `(${unlessUnseen} and ${differ})`
        : `(r.${coreVersion} = '' and t.${coreVersion} = '' and ${differ})`;
    return { name: column, condition };
  });
}

const shownChecks = ({ shown = {}, name: core }: MirrorResource, group: NamedGroup): Check[] =>
  group.group === core
    ? Object.entries(shown).map(([column, sql]) =>
        differs(
          column,
          sql((field) => `r.${group.prefix}${field}`),
        ),
      )
    : [];

const computedChecks = ({ computed = {} }: MirrorResource): Check[] =>
  Object.entries(computed).map(([column, sql]) => differs(column, `(${sql((part) => `t.${part}`)})`));

const differing = ({ versionColumn: v }: NamedGroup, checks: readonly Check[]): string =>
  `case when r.${v} <> '' and t.id is not null then array_remove(array[${checks
    .map(({ name, condition }) => `case when ${condition} then '${name}' end`)
    .join(", ")}]::text[], null) end`;

/** A group of fields that is missing from the mirror or differs there. */
export interface DifferentGroup {
  state: GroupState;
  /** '' if the group was never seen here. */
  storedVersion: string;
  /** Columns that differ, `(content)` for the content; empty if the group is merely missing. */
  columns: readonly string[];
}

export interface DifferentObject {
  resource: Resource;
  id: string;
  /** Null if there is no row. Timestamps are text, money is a number of minor units. */
  stored: Readonly<Record<string, unknown>> | null;
  groups: readonly DifferentGroup[];
}

const tables = mirrorResources.map((resource) => {
  const { sql, places } = storedRowStatement(resource);
  return {
    resource,
    groups: namedGroups(resource),
    stored: { name: resource.table, sql },
    isStored: equalityTest(resource, places),
    statement: compareStatement(resource),
  };
});

type ComparedTable = (typeof tables)[number];

/**
 * Returns the objects that are missing from the mirror or differ from these states. Of several states of one group the
 * highest version counts. One statement per table if all is equal, up to four if something may differ. Reads without a
 * lock, so a difference may have been overtaken since. Where something may differ, redacts states of erased people in
 * place.
 */
export async function compareStates(db: Knex, states: readonly GroupState[]): Promise<DifferentObject[]> {
  const found: DifferentObject[] = [];
  for (const compared of tables) {
    const own = states.filter(({ group }) => Object.hasOwn(compared.resource.groups, group));
    if (own.length === 0) continue;
    const unproved = await findUnproved(db, compared, own);
    if (unproved.length > 0) found.push(...(await findDifferent(db, compared, unproved)));
  }
  return found;
}

/** The rows that are not stored exactly as the states show them. */
async function findUnproved(
  db: Knex,
  { stored, isStored }: ComparedTable,
  own: readonly GroupState[],
): Promise<TableRow[]> {
  const rows = winnersAmong(own);
  const storedRows = await readStoredRows(
    db,
    stored,
    rows.map(({ id }) => id),
  );
  const storedById = new Map(storedRows.map((row) => [row[0], row]));
  const unproved = rows.filter(({ id, states }) => {
    const row = storedById.get(id);
    return row === undefined || !isStored(states, row);
  });
  return unproved.sort(byId);
}

async function findDifferent(
  db: Knex,
  { resource, groups, statement }: ComparedTable,
  rows: readonly TableRow[],
): Promise<DifferentObject[]> {
  await redactErased(
    db,
    rows.flatMap(({ states }) => [...states.values()]),
  );
  const bindings = rowBindings(resource, statement.given, rows);
  const { rows: answer } = await db
    .raw<{ rows: AnswerRow[] }>(statement.sql, bindings)
    .options({ name: `compare-${resource.table}` });
  const statesById = new Map(rows.map(({ id, states }) => [id, states]));
  return answer.map((row) => ({
    resource: resource.name,
    id: row.id,
    stored: row.found ? row.stored : null,
    groups: groups.flatMap(({ group, versionColumn, prefix }) => {
      const state = statesById.get(row.id)?.get(group);
      if (state === undefined) return [];
      const columns = (row[`${prefix}differing`] ?? []) as string[];
      const version = row.stored?.[versionColumn];
      const storedVersion = typeof version === "string" ? version : "";
      return storedVersion === "" || columns.length > 0 ? [{ state, storedVersion, columns }] : [];
    }),
  }));
}

interface AnswerRow {
  id: string;
  found: boolean;
  stored: Record<string, unknown> | null;
  [differing: string]: unknown;
}
