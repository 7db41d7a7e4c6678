import type { Knex } from "knex";
import { sqlArray } from "../../../platform/postgres/values.ts";
import {
  type ColumnDefinition,
  type Columns,
  type MirrorResource,
  type NamedGroup,
  type RowExpression,
  namedGroups,
} from "../resources/resource.ts";
import type { Column, GroupState } from "../snapshot.ts";

/** Whether a stored row equals these states of its groups exactly. */
export type EqualityTest = (states: ReadonlyMap<string, GroupState>, stored: StoredRow) => boolean;

/**
 * Builds the equality test for a table's rows: every column and the whole content of every given group. The test passes
 * only if `compareStatement` would find no difference. That statement defines a difference, and compares every row that
 * fails here.
 */
export function equalityTest(resource: MirrorResource, places: ReadonlyMap<string, number>): EqualityTest {
  const placeOf = (name: string): number => {
    const place = places.get(name);
    if (place === undefined) throw new Error(`${resource.name}: the statement reads no ${name}`);
    return place;
  };
  const groups = namedGroups(resource).map((group) => ({
    group: group.group,
    isCore: group.group === resource.name,
    columns: printedColumns(group.columns),
    columnsPlace: placeOf(columnsOf(group)),
    contentPlace: group.contentColumn === undefined ? null : placeOf(group.contentColumn),
  }));
  const holds = placeOf(asked.holds);
  const shownHold = resource.shown === undefined ? null : placeOf(asked.shownHold);
  const areSharedStored = sharedTest(resource, placeOf);

  return (states, stored) => {
    if (stored[holds] !== "t") return false;
    for (const { group, isCore, columns, columnsPlace, contentPlace } of groups) {
      const state = states.get(group);
      if (state === undefined) continue;
      if (contentPlace !== null && stored[contentPlace] !== state.json) return false;
      let shown = `(${state.changedAt}${columnsText(columns, state)}`;
      if (isCore) shown += `,"${inPostgresForm(state.updatedAt)}"`;
      // A group that was never seen here has no stored time, so it fails; `compareStatement` decides what that means.
      if (stored[columnsPlace] !== `${shown})`) return false;
      if (isCore && shownHold !== null && stored[shownHold] !== "t") return false;
    }
    return areSharedStored(states, stored);
  };
}

/** Tests the shared columns: the core owns them once it was seen, the other group until then. */
function sharedTest({ shared, name: core }: MirrorResource, placeOf: (name: string) => number): EqualityTest {
  if (shared === undefined) return () => true;
  const columns = printedColumns(shared.columns);
  const [place, hasCore] = [placeOf(sharedColumns), placeOf(asked.hasCore)];
  return (states, stored) => {
    const other = stored[hasCore] === "t" ? undefined : states.get(shared.with);
    const owner = states.get(core) ?? other;
    // The list begins with a comma, a row does not.
    return owner === undefined || stored[place] === `(${columnsText(columns, owner).slice(1)})`;
  };
}

/** A column, and how its value is printed in a row. */
interface PrintedColumn {
  name: string;
  print: (value: NonNullable<Column>) => string;
}

const printedColumns = (columns: Columns): PrintedColumn[] =>
  Object.entries(columns).map(([name, { type }]) => ({ name, print: printers[type] }));

/**
 * For each type, a value as `record_out` of Postgres prints it. Values of most types need no quotes, times always do.
 */
const printers: Readonly<Record<ColumnDefinition["type"], PrintedColumn["print"]>> = {
  text: (value) => inRecord(String(value)),
  bigint: String,
  integer: String,
  boolean: (value) => (value === true ? "t" : "f"),
  timestamptz: (value) => `"${inPostgresForm(String(value))}"`,
};

/** The columns' values as in the text of `row(…)`, each after a comma. Null is the empty text. */
function columnsText(columns: readonly PrintedColumn[], state: GroupState): string {
  let text = "";
  for (const { name, print } of columns) {
    const value = state.columns[name];
    text += value === null || value === undefined ? "," : `,${print(value)}`;
  }
  return text;
}

const noFraction = ".000000Z";

/** Converts a time from the fixed form to Postgres's text of a `timestamp`, which drops trailing zeros. */
function inPostgresForm(at: string): string {
  const [date, time] = [at.slice(0, 10), at.slice(11, 19)];
  return at.endsWith(noFraction) ? `${date} ${time}` : `${date} ${time}${at.slice(19, -1).replace(/0+$/, "")}`;
}

/** A stored row as a few texts that are cheap to compare: the values of `storedRowStatement`. */
export type StoredRow = readonly (string | null)[];

/** Conditions that the query evaluates for a row in addition to its columns: 't' or 'f'. */
const asked = {
  /** Computed columns equal the value from the stored groups, and the row's owner was not erased. */
  holds: "holds",
  /** Computed columns equal the service's values in the stored content. */
  shownHold: "shown_hold",
  /** The core group was seen. */
  hasCore: "has_core",
} as const;

/** Name of the value with the time of the group's version and its columns, as one text. */
const columnsOf = ({ prefix }: Pick<NamedGroup, "prefix">): string => `${prefix}columns`;
/** Name of the value with the columns that two groups share, as one text. */
const sharedColumns = "shared_columns";

export interface StoredRowStatement {
  sql: string;
  /** The index of each value in a row. */
  places: ReadonlyMap<string, number>;
}

/**
 * Reads stored rows: the columns of a group as one text, content as `jsonb` prints it. One text per group is cheap to
 * compare and for the driver to parse. Read-only. For customers, shortened:
 *
 *     select t.id as id, row(left(t.version, 27), t.email, …)::text as version_columns, t.data as data, …
 *     from mirror.customers t where t.id = any(?::text[])
 *
 * The whole is in test/mirror/__sql__/customers.stored.sql.
 */
export function storedRowStatement(resource: MirrorResource): StoredRowStatement {
  const values = new Map<string, string>([["id", "t.id"]]);
  for (const group of namedGroups(resource)) {
    const { columns, versionColumn, contentColumn } = group;
    const changedAt = group.group === resource.name ? [inUtc("source_updated_at")] : [];
    values.set(columnsOf(group), rowOf([`left(t.${versionColumn}, 27)`, ...columnValues(columns), ...changedAt]));
    if (contentColumn !== undefined) values.set(contentColumn, `t.${contentColumn}`);
  }
  if (resource.shared !== undefined) {
    values.set(sharedColumns, rowOf(columnValues(resource.shared.columns)));
    values.set(asked.hasCore, `t.${resource.groups[resource.name]?.versionColumn} <> ''`);
  }
  if (resource.shown !== undefined) values.set(asked.shownHold, allHold(resource.shown, coreOf(resource)));
  const { owner } = resource;
  values.set(
    asked.holds,
    `${allHold(resource.computed, (column) => `t.${column}`)}${
      owner === null
        ? ""
        : `
       and not exists (select from mirror.erasures e where e.customer_id = t.${owner})`
    }`,
  );
  const list = [...values].map(([name, sql]) => `${sql} as ${name}`).join(", ");
  return {
    sql: `select ${list} from mirror.${resource.table} t where t.id = any(?::text[])`,
    places: new Map([...values.keys()].map((name, place) => [name, place])),
  };
}

const columnValues = (columns: Columns): string[] =>
  Object.entries(columns).map(([column, { type }]) => (type === "timestamptz" ? inUtc(column) : `t.${column}`));

/** Independent of the session's time zone. */
const inUtc = (column: string): string => `t.${column} at time zone 'UTC'`;

const rowOf = (values: readonly string[]): string => `row(${values.join(", ")})::text`;

function allHold(expressions: MirrorResource["computed"] = {}, field: RowExpression): string {
  const each = Object.entries(expressions).map(([column, sql]) => `t.${column} is not distinct from (${sql(field)})`);
  return ["true", ...each].join(" and ");
}

/** The fields that `MirrorResource.shown` needs, taken from the stored row instead of a snapshot of the core. */
function coreOf({ name, groups }: MirrorResource): RowExpression {
  const columns = new Map([
    ["content", groups[name]?.contentColumn],
    ["at", "source_updated_at"],
  ]);
  return (field) => {
    const column = columns.get(field);
    if (column === undefined) throw new Error(`${name}: no column has the core's ${field}`);
    return `t.${column}`;
  };
}

/** Values are compared as text; the driver's parsers would make objects of them. */
const asText = { getTypeParser: () => (text: string) => text };

/** Reads the existing rows with these ids. One statement, without a lock. */
export async function readStoredRows(
  db: Knex,
  { name, sql }: { name: string; sql: string },
  ids: readonly string[],
): Promise<StoredRow[]> {
  const { rows } = await db
    .raw<{ rows: StoredRow[] }>(sql, [sqlArray(ids)])
    .options({ name: `stored-${name}`, rowMode: "array", types: asText });
  return rows;
}

/** Characters that make `record_out` of Postgres quote a value. */
const special = /["\\(), \t\n\v\f\r]/;

/** A text as `record_out` of Postgres prints it within a row. */
export const inRecord = (text: string): string => (text === "" || special.test(text) ? quoted(text) : text);

const doubled = /["\\]/;

const quoted = (value: string): string => `"${doubled.test(value) ? value.replace(/["\\]/g, "$&$&") : value}"`;
