import type { PageQuery } from "./page-query.ts";
import { ascending, countBefore, descending } from "./sorted-index.ts";
import type { Row, RowIndex, StoredRecord, Table } from "./table.ts";

/** So many rows can be looked at one by one in about a millisecond. */
const fewEnough = 20_000;

/** Rows to look through instead of walking: where a filter leaves few, and where no index has the order. */
export function fewRows<T extends StoredRecord>(
  table: Table<T>,
  query: PageQuery<T>,
  walk: { size: number; downward: boolean },
): Iterable<Row<T>> | null {
  const candidates = [...candidatesOf(table, query, walk.downward)];
  if (walk.size === Infinity) candidates.push(everyRow(table, walk.downward));
  const smallest = candidates.reduce((a, b) => (b.size < a.size ? b : a), {
    size: Infinity,
    rows: (): Iterable<Row<T>> => [],
  });
  const isWorthIt =
    smallest.size < walk.size && (smallest.size <= fewEnough || walk.size === Infinity);
  return isWorthIt ? smallest.rows() : null;
}

interface Candidate<T> {
  size: number;
  rows: () => Iterable<Row<T>>;
}

function everyRow<T extends StoredRecord>(table: Table<T>, downward: boolean): Candidate<T> {
  return candidate([table.byCreation], downward);
}

function candidate<T>(indexes: readonly RowIndex<T>[], downward: boolean): Candidate<T> {
  return {
    size: sizeOf(indexes),
    *rows() {
      for (const index of indexes) yield* downward ? descending(index) : ascending(index);
    },
  };
}

function* candidatesOf<T extends StoredRecord>(
  table: Table<T>,
  query: PageQuery<T>,
  downward: boolean,
): Iterable<Candidate<T>> {
  if (query.among !== undefined) {
    const rows = [...new Set(query.among)].flatMap((id) => table.row(id) ?? []);
    yield { size: rows.length, rows: () => rows };
  }
  for (const [field, values] of Object.entries(query.anyOf ?? {})) {
    const indexes = [...new Set(values)].flatMap((value) => table.group(field, value) ?? []);
    yield candidate(indexes, downward);
  }
  for (const [field, { least, most }] of Object.entries(query.within ?? {})) {
    const { index, keyOf } = table.amount(field);
    yield span(
      index,
      (row) => keyOf(row.value) >= least,
      (row) => keyOf(row.value) > most,
    );
  }
  const { createdFromMs, createdBeforeMs } = query;
  if (createdFromMs === undefined && createdBeforeMs === undefined) return;
  yield span(
    table.byCreation,
    (row) => row.createdAtMs >= (createdFromMs ?? -Infinity),
    (row) => row.createdAtMs >= (createdBeforeMs ?? Infinity),
  );
}

/** From the first row that `isIn` to the last before one that `isPast`. */
function span<T>(
  index: RowIndex<T>,
  isIn: (row: Row<T>) => boolean,
  isPast: (row: Row<T>) => boolean,
): Candidate<T> {
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
