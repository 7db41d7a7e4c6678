import type { Knex } from "knex";
import type { Resource } from "../snapshot.ts";
import { type MirrorResource, namedGroups } from "../resources/resource.ts";
import { mirrorResources } from "../resources.ts";
import { latestPlausible } from "../version.ts";

/** A row that the mirror's writer cannot have produced. */
export interface InconsistentRow {
  resource: Resource;
  id: string;
  columns: string[];
}

/** Every row of the mirror may be at fault, so rows are returned in batches. */
const batchSize = 1_000;

/**
 * Finds rows edited by hand where no comparison with the service finds them: a version in the future, which keeps every
 * newer state out; fields of a group that was never seen; a `deleted_at` on an object that cannot be deleted; a content
 * hash that is not its version's. Yields them in batches. Reads every row, so it is meant for full runs. `seenAt`: the
 * service's time.
 */
export async function* handEditedRows(db: Knex, seenAt: string): AsyncGenerator<InconsistentRow[], void, undefined> {
  for (const resource of mirrorResources) {
    let after: string | null = null;
    for (;;) {
      const { rows }: { rows: InconsistentRow[] } = await db.raw(
        `select cast(:resource as text) as resource, id, columns from (
           select t.id, array_remove(array[${faultsOf(resource).join(", ")}]::text[], null) as columns
           from mirror.${resource.table} t where cast(:after as text) is null or t.id > :after
         ) checked where cardinality(columns) > 0 order by id limit :batchSize`,
        { resource: resource.name, limit: latestPlausible(seenAt), after, batchSize } as Record<
          string,
          string | number
        >,
      );
      const last = rows.at(-1);
      if (last !== undefined) yield rows;
      if (last === undefined || rows.length < batchSize) break;
      after = last.id;
    }
  }
}

/** One SQL expression for each check: the column's name if it is wrong, else null. */
function faultsOf(resource: MirrorResource): string[] {
  const fault = (column: string, condition: string) => `case when ${condition} then '${column}' end`;
  const ofGroups = namedGroups(resource).flatMap(({ versionColumn: v, columns, contentColumn }) => [
    fault(v, `left(t.${v}, 27) > :limit`),
    ...[...Object.keys(columns), ...(contentColumn === undefined ? [] : [contentColumn])].map((column) =>
      fault(column, `t.${v} = '' and t.${column} is not null`),
    ),
  ]);
  const core = resource.groups[resource.name]?.versionColumn;
  return [
    ...ofGroups,
    fault("content_hash", `t.${core} <> '' and t.content_hash is distinct from right(t.${core}, 32)`),
    ...(resource.absence !== undefined ? [] : [fault("deleted_at", "t.deleted_at is not null")]),
  ];
}
