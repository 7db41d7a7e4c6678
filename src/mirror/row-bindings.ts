import { arrayLiteral } from "./array-literal.ts";
import { packJson } from "./json-blob.ts";
import type { GroupState } from "./observation.ts";
import type { TableRow } from "./table-rows.ts";
import { groupFields } from "./table-statement.ts";
import type { GivenColumn } from "./table-statement.ts";
import type { MirrorTable, NamedGroup } from "./table.ts";

type Value = string | number | boolean | null;

/** What `givenRows` is bound to: a blob of JSON texts, and one array a column. */
export function rowBindings(
  table: MirrorTable,
  groups: readonly NamedGroup[],
  given: readonly GivenColumn[],
  rows: readonly TableRow[],
): (string | Buffer)[] {
  const blob = packJson(
    groups.flatMap(({ group }) => rows.map(({ states }) => states.get(group)?.json ?? null)),
  );
  const columns = new Map<string, Value[]>([
    ["id", rows.map(({ id }) => id)],
    ["winner", rows.map(({ isWinner }) => isWinner)],
    ["last_cause", rows.map(({ states }) => causeOf(table, states))],
  ]);
  groups.forEach(({ group, prefix, versionColumn, columns: own }, n) => {
    const states = rows.map((row) => row.states.get(group));
    const part = <T>(all: readonly T[]) => all.slice(n * rows.length, (n + 1) * rows.length);
    const fields: Record<keyof typeof groupFields, Value[]> = {
      at: states.map((state) => state?.updatedAt ?? null),
      observed: states.map((state) => state?.observedAt ?? null),
      hash: states.map((state) => state?.hash ?? null),
      cause: states.map((state) => state?.cause ?? null),
      replaced: states.map((state) => state?.isReplaced ?? null),
      position: part(blob.positions),
      length: part(blob.lengths),
    };
    for (const [field, values] of Object.entries(fields)) columns.set(prefix + field, values);
    columns.set(
      versionColumn,
      states.map((state) => state?.version ?? ""),
    );
    for (const column of Object.keys(own)) {
      columns.set(
        column,
        states.map((state) => state?.columns[column] ?? null),
      );
    }
  });
  for (const column of Object.keys(table.shared?.columns ?? {})) {
    columns.set(
      column,
      rows.map(({ states }) => {
        const owner = states.get(table.core) ?? states.get(table.shared?.with ?? "");
        return owner?.columns[column] ?? null;
      }),
    );
  }
  return [blob.bytes, ...given.map(({ name }) => arrayLiteral(columns.get(name) ?? []))];
}

const causeOf = ({ core }: MirrorTable, states: ReadonlyMap<string, GroupState>): string =>
  (states.get(core) ?? [...states.values()][0])?.cause ?? "";
