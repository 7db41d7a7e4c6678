import type { Knex } from "knex";
import { compareStatement } from "./compare-statement.ts";
import { redactErased } from "./erasure/redact-states.ts";
import type { GroupState } from "./observation.ts";
import { rowBindings } from "./row-bindings.ts";
import { tableRows } from "./table-rows.ts";
import { mirrorTables } from "./tables.ts";
import { namedGroups } from "./table.ts";

/** A group of an object that the mirror does not have as it was given. */
export interface DifferentGroup {
  state: GroupState;
  /** Its stored version; '' where the group was never seen here. */
  storedVersion: string;
  /** Columns that differ, `(content)` for the content; empty where the group is only not there. */
  columns: readonly string[];
}

export interface DifferentObject {
  table: string;
  id: string;
  /** The stored row; null where there is none. Timestamps are text, money is a number. */
  stored: Readonly<Record<string, unknown>> | null;
  groups: readonly DifferentGroup[];
}

const statements = mirrorTables.map((table) => ({
  table,
  groups: namedGroups(table),
  statement: compareStatement(table),
}));

/**
 * The objects that the mirror does not have exactly as these states show them; of several states of one group the
 * highest counts. One statement a table. Reads without a lock: what is found may have been overtaken since.
 */
export async function compareStates(
  db: Knex,
  states: readonly GroupState[],
): Promise<DifferentObject[]> {
  const found: DifferentObject[] = [];
  await redactErased(db, states);
  for (const { table, groups, statement } of statements) {
    const own = states.filter(({ group }) => Object.hasOwn(table.groups, group));
    if (own.length === 0) continue;
    const rows = tableRows(table, own).filter(({ isWinner }) => isWinner);
    const bindings = rowBindings(table, groups, statement.given, rows);
    const { rows: answer } = await db
      .raw<{ rows: AnswerRow[] }>(statement.sql, bindings)
      .options({ name: `compare-${table.name}` });
    const byId = new Map(rows.map(({ id, states: of }) => [id, of]));
    for (const row of answer) {
      found.push({
        table: table.name,
        id: row.id,
        stored: row.found ? row.stored : null,
        groups: groups.flatMap(({ group, versionColumn, prefix }) => {
          const state = byId.get(row.id)?.get(group);
          if (state === undefined) return [];
          const columns = (row[`${prefix}differing`] ?? []) as string[];
          const version = row.stored?.[versionColumn];
          const storedVersion = typeof version === "string" ? version : "";
          return storedVersion === "" || columns.length > 0
            ? [{ state, storedVersion, columns }]
            : [];
        }),
      });
    }
  }
  return found;
}

interface AnswerRow {
  id: string;
  found: boolean;
  stored: Record<string, unknown> | null;
  [differing: string]: unknown;
}
