import type { Knex } from "knex";
import { compareStatement } from "./compare-statement.ts";
import { redactErased } from "./erasure/redact-states.ts";
import type { GroupState } from "./observation.ts";
import { isStoredTest } from "./is-stored.ts";
import { rowBindings } from "./row-bindings.ts";
import { readStoredRows, storedRowStatement } from "./stored-rows.ts";
import { tableRows } from "./table-rows.ts";
import type { TableRow } from "./table-rows.ts";
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

const tables = mirrorTables.map((table) => {
  const { sql, places } = storedRowStatement(table);
  return {
    table,
    groups: namedGroups(table),
    stored: { name: table.name, sql },
    isStored: isStoredTest(table, places),
    statement: compareStatement(table),
  };
});

type ComparedTable = (typeof tables)[number];

/**
 * The objects that the mirror does not have exactly as these states show them; of several states of one group the
 * highest counts. One statement a table where all is equal, three where something may differ. Reads without a lock:
 * what is found may have been overtaken since. States of people who were erased are redacted in place.
 */
export async function compareStates(
  db: Knex,
  states: readonly GroupState[],
): Promise<DifferentObject[]> {
  const found: DifferentObject[] = [];
  for (const compared of tables) {
    const own = states.filter(({ group }) => Object.hasOwn(compared.table.groups, group));
    if (own.length === 0) continue;
    const unproved = await findUnproved(db, compared, own);
    if (unproved.length > 0) found.push(...(await findDifferent(db, compared, unproved)));
  }
  return found;
}

/** The rows that are not stored, to the letter, as they are shown. */
async function findUnproved(
  db: Knex,
  { table, stored, isStored }: ComparedTable,
  own: readonly GroupState[],
): Promise<TableRow[]> {
  const rows = tableRows(table, own).filter(({ isWinner }) => isWinner);
  const storedRows = await readStoredRows(
    db,
    stored,
    rows.map(({ id }) => id),
  );
  const byId = new Map(storedRows.map((row) => [row[0], row]));
  return rows.filter(({ id, states }) => {
    const row = byId.get(id);
    return row === undefined || !isStored(states, row);
  });
}

async function findDifferent(
  db: Knex,
  { table, groups, statement }: ComparedTable,
  rows: readonly TableRow[],
): Promise<DifferentObject[]> {
  await redactErased(
    db,
    rows.flatMap(({ states }) => [...states.values()]),
  );
  const bindings = rowBindings(table, groups, statement.given, rows);
  const { rows: answer } = await db
    .raw<{ rows: AnswerRow[] }>(statement.sql, bindings)
    .options({ name: `compare-${table.name}` });
  const byId = new Map(rows.map(({ id, states }) => [id, states]));
  return answer.map((row) => ({
    table: table.name,
    id: row.id,
    stored: row.found ? row.stored : null,
    groups: groups.flatMap(({ group, versionColumn, prefix }) => {
      const state = byId.get(row.id)?.get(group);
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
