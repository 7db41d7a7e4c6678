import type { PageQuery } from "./page-query.ts";
import { ascending, countBefore, descending } from "./sorted-index.ts";
import type { Row, RowIndex } from "./row.ts";
import type { StoredRecord, Table } from "./table.ts";

/** Rows that one filter of a query leaves over. */
export interface RowSet<T> {
  size: number;
  /** In no order that counts. */
  rows: () => Iterable<Row<T>>;
}

/** What each filter leaves over. The first is all there is. */
export function rowSets<T extends StoredRecord>(
  table: Table<T>,
  query: PageQuery<T>,
): [RowSet<T>, ...RowSet<T>[]] {
  return [union([table.byCreation]), ...filtered(table, query)];
}

function* filtered<T extends StoredRecord>(
  table: Table<T>,
  query: PageQuery<T>,
): Iterable<RowSet<T>> {
  if (query.among !== undefined) {
    const rows = [...new Set(query.among)].flatMap((id) => table.row(id) ?? []);
    yield { size: rows.length, rows: () => rows };
  }
  for (const [field, values] of Object.entries(query.anyOf ?? {})) {
    yield union([...new Set(values)].flatMap((value) => table.group(field, value) ?? []));
  }
  for (const word of query.words ?? []) {
    const rows = table.words?.startingWith(word);
    if (rows !== null && rows !== undefined) yield rows;
  }
  for (const [field, { least, most }] of Object.entries(query.within ?? {})) {
    const { index, keyOf } = table.amount(field);
    yield span(
      index,
      (row) => keyOf(row.value) >= least,
      (row) => keyOf(row.value) > most,
    );
  }
  const created = createdSpan(table.byCreation, query);
  if (created !== undefined) yield created;
}

/** The rows within the bounds of creation; undefined when a query has none. */
export function createdSpan<T>(
  index: RowIndex<T>,
  { createdFromMs, createdBeforeMs }: PageQuery<T>,
): RowSet<T> | undefined {
  if (createdFromMs === undefined && createdBeforeMs === undefined) return undefined;
  return span(
    index,
    (row) => row.createdAtMs >= (createdFromMs ?? -Infinity),
    (row) => row.createdAtMs >= (createdBeforeMs ?? Infinity),
  );
}

function union<T>(indexes: readonly RowIndex<T>[]): RowSet<T> {
  return {
    size: sizeOf(indexes),
    *rows() {
      // Most lists want the newest first: what is looked at later is then seldom better.
      for (const index of indexes) yield* descending(index);
    },
  };
}

/** From the first row that `isIn` to the last before one that `isPast`. */
function span<T>(
  index: RowIndex<T>,
  isIn: (row: Row<T>) => boolean,
  isPast: (row: Row<T>) => boolean,
): RowSet<T> {
  return {
    size: Math.max(0, countBefore(index, isPast) - countBefore(index, isIn)),
    *rows() {
      for (const row of ascending(index, isIn)) {
        if (isPast(row)) return;
        yield row;
      }
    },
  };
}

export function sizeOf<T>(indexes: readonly RowIndex<T>[]): number {
  return indexes.reduce((sum, { size }) => sum + size, 0);
}
