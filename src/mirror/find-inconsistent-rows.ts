import type { Knex } from "knex";
import type { Resource } from "./observation.ts";
import { namedGroups } from "./table.ts";
import type { MirrorTable } from "./table.ts";
import { mirrorTables } from "./tables.ts";
import { latestPlausible } from "./version.ts";

/** A row that the one writer cannot have made. */
export interface InconsistentRow {
  resource: Resource;
  id: string;
  /** Columns that no state explains. */
  columns: string[];
}

/** Of a fault that is everywhere the first thousand tell as much as the rest. */
const most = 1_000;

/**
 * Rows with columns that no list of the service can contradict, and that were changed all the same: a version of the
 * future, which lets nothing newer in; fields of a group that was never seen; a mark of deletion on what cannot be
 * deleted; a hash of other content. Reads every row: for runs that walk everything. `seenAt`: the service's time.
 */
export async function findInconsistentRows(db: Knex, seenAt: string): Promise<InconsistentRow[]> {
  const found: InconsistentRow[] = [];
  for (const table of mirrorTables) {
    const { rows } = await db.raw<{ rows: InconsistentRow[] }>(
      `select cast(:resource as text) as resource, id, columns from (
         select t.id, array_remove(array[${faultsOf(table).join(", ")}]::text[], null) as columns
         from mirror.${table.name} t
       ) checked where cardinality(columns) > 0 order by id limit :most`,
      { resource: table.core, limit: latestPlausible(seenAt), most },
    );
    found.push(...rows);
  }
  return found;
}

/** SQL of the name of each column that is at fault, else null. */
function faultsOf(table: MirrorTable): string[] {
  const fault = (column: string, condition: string) =>
    `case when ${condition} then '${column}' end`;
  const ofGroups = namedGroups(table).flatMap(({ versionColumn: v, columns, contentColumn }) => [
    fault(v, `left(t.${v}, 27) > :limit`),
    ...[...Object.keys(columns), ...(contentColumn === undefined ? [] : [contentColumn])].map(
      (column) => fault(column, `t.${v} = '' and t.${column} is not null`),
    ),
  ]);
  const core = table.groups[table.core]?.versionColumn;
  return [
    ...ofGroups,
    fault(
      "content_hash",
      `t.${core} <> '' and t.content_hash is distinct from right(t.${core}, 32)`,
    ),
    ...(table.name === "customers" ? [] : [fault("deleted_at", "t.deleted_at is not null")]),
  ];
}
