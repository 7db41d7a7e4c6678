import type { Knex } from "knex";
import { sqlArray } from "../platform/sql-array.ts";
import { namedGroups } from "./table.ts";
import type { MirrorTable, NamedGroup, RowExpression } from "./table.ts";

/** A stored row in few texts, so that to see that it is equal costs little: the values of `storedRowStatement`. */
export type StoredRow = readonly (string | null)[];

/** What is asked of a row beside its columns, 't' or 'f'. */
export const asked = {
  /** The columns that several groups make are what the stored groups make, and nobody asked for the row's erasure. */
  holds: "holds",
  /** What the service shows of such columns, by the stored content, is there. */
  shownHold: "shown_hold",
  /** The core was seen here. */
  hasCore: "has_core",
} as const;

/** The time of the group's version and its columns, as one text. */
export const columnsOf = ({ prefix }: Pick<NamedGroup, "prefix">): string => `${prefix}columns`;
/** The columns that two groups share, as one text. */
export const sharedColumns = "shared_columns";

export interface StoredRowStatement {
  sql: string;
  /** Where each value stands in a row. */
  places: ReadonlyMap<string, number>;
}

/**
 * Reads rows as they are stored: the columns of a group as one text, content as `jsonb` prints it. One text is compared at
 * once, and is all the driver has to take apart. Only reads.
 */
export function storedRowStatement(table: MirrorTable): StoredRowStatement {
  const values = new Map<string, string>([["id", "t.id"]]);
  for (const group of namedGroups(table)) {
    const { columns, versionColumn, contentColumn } = group;
    const changedAt = group.group === table.core ? [inUtc("source_updated_at")] : [];
    values.set(
      columnsOf(group),
      rowOf([`left(t.${versionColumn}, 27)`, ...columnValues(columns), ...changedAt]),
    );
    if (contentColumn !== undefined) values.set(contentColumn, `t.${contentColumn}`);
  }
  if (table.shared !== undefined) {
    values.set(sharedColumns, rowOf(columnValues(table.shared.columns)));
    values.set(asked.hasCore, `t.${table.groups[table.core]?.versionColumn} <> ''`);
  }
  if (table.shown !== undefined) values.set(asked.shownHold, allHold(table.shown, coreOf(table)));
  const owner = table.name === "customers" ? "t.id" : "t.customer_id";
  values.set(
    asked.holds,
    `${allHold(table.computed, (column) => `t.${column}`)}
       and not exists (select from mirror.erasures e where e.customer_id = ${owner})`,
  );
  const list = [...values].map(([name, sql]) => `${sql} as ${name}`).join(", ");
  return {
    sql: `select ${list} from mirror.${table.name} t where t.id = any(?::text[])`,
    places: new Map([...values.keys()].map((name, place) => [name, place])),
  };
}

const columnValues = (columns: Readonly<Record<string, string>>): string[] =>
  Object.entries(columns).map(([column, type]) =>
    type === "timestamptz" ? inUtc(column) : `t.${column}`,
  );

/** Whatever the time zone of the session. */
const inUtc = (column: string): string => `t.${column} at time zone 'UTC'`;

const rowOf = (values: readonly string[]): string => `row(${values.join(", ")})::text`;

function allHold(expressions: MirrorTable["computed"] = {}, field: RowExpression): string {
  const each = Object.entries(expressions).map(
    ([column, sql]) => `t.${column} is not distinct from (${sql(field)})`,
  );
  return ["true", ...each].join(" and ");
}

/** What a look at the core shows (`MirrorTable.shown`), as the stored row has it where core and look are the same. */
function coreOf({ name, groups, core }: MirrorTable): RowExpression {
  const columns = new Map([
    ["content", groups[core]?.contentColumn],
    ["at", "source_updated_at"],
  ]);
  return (field) => {
    const column = columns.get(field);
    if (column === undefined) throw new Error(`${name}: no column keeps ${field} of the core`);
    return `t.${column}`;
  };
}

/** The driver's parsers would make objects of what is compared as text. */
const asText = { getTypeParser: () => (text: string) => text };

/** The rows with these ids that are there. One statement; reads without a lock. */
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
