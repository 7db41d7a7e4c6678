import type { Knex } from "knex";
import { sqlArray } from "../platform/sql-array.ts";
import { contentHashSql } from "./canonical.ts";
import { namedGroups } from "./table.ts";
import type { MirrorTable, RowExpression } from "./table.ts";

/** A stored row as text: the values of `storedTextStatement`, by their place in it. */
export type StoredTexts = readonly (string | null)[];

/** What is asked of a row beside its columns, 't' or 'f'. */
export const asked = {
  /** The columns that several groups make are what the stored groups make. */
  computedHold: "computed_hold",
  /** What the service shows of such columns, by the stored content, is there. */
  shownHold: "shown_hold",
  /** The row belongs to somebody who was erased. */
  isErased: "is_erased",
} as const;

export const hashOf = (contentColumn: string): string => `hash_of_${contentColumn}`;

export interface StoredTextStatement {
  sql: string;
  /** Where each value stands in a row. */
  places: ReadonlyMap<string, number>;
}

/**
 * Reads rows as they are stored, each column as text and of content its hash, made of what is stored now: to see that
 * rows are equal costs the database a third of what it costs to be handed all that was shown. Only reads.
 */
export function storedTextStatement(table: MirrorTable): StoredTextStatement {
  const values = new Map<string, string>([["id", "t.id"]]);
  const addColumns = (columns: Readonly<Record<string, string>> = {}) => {
    for (const [column, type] of Object.entries(columns)) {
      // Whatever the time zone of the session.
      const inUtc = type === "timestamptz" ? " at time zone 'UTC'" : "";
      values.set(column, `t.${column}${inUtc}`);
    }
  };
  for (const { columns, versionColumn, contentColumn } of namedGroups(table)) {
    addColumns(columns);
    values.set(versionColumn, `t.${versionColumn}`);
    if (contentColumn === undefined) continue;
    values.set(hashOf(contentColumn), contentHashSql(`t.${contentColumn}`));
  }
  addColumns(table.shared?.columns);
  addColumns({ source_updated_at: "timestamptz" });
  values.set(
    asked.computedHold,
    allHold(table.computed, (column) => `t.${column}`),
  );
  values.set(asked.shownHold, allHold(table.shown, storedCoreOf(table)));
  const owner = table.name === "customers" ? "t.id" : "t.customer_id";
  values.set(
    asked.isErased,
    `exists (select from mirror.erasures e where e.customer_id = ${owner})`,
  );
  const list = [...values].map(([name, sql]) => `${sql} as ${name}`).join(", ");
  return {
    sql: `select ${list} from mirror.${table.name} t where t.id = any(?::text[])`,
    places: new Map([...values.keys()].map((name, place) => [name, place])),
  };
}

function allHold(expressions: MirrorTable["computed"] = {}, field: RowExpression): string {
  const each = Object.entries(expressions).map(
    ([column, sql]) => `t.${column} is not distinct from (${sql(field)})`,
  );
  return ["true", ...each].join(" and ");
}

/** What a look at the core shows (`MirrorTable.shown`), as the stored row has it where core and look are the same. */
function storedCoreOf({ name, groups, core }: MirrorTable): RowExpression {
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
export async function readStoredTexts(
  db: Knex,
  { name, sql }: { name: string; sql: string },
  ids: readonly string[],
): Promise<StoredTexts[]> {
  const { rows } = await db
    .raw<{ rows: StoredTexts[] }>(sql, [sqlArray(ids)])
    .options({ name: `stored-${name}`, rowMode: "array", types: asText });
  return rows;
}
