import { rowsInBoth } from "./intersection.ts";
import type { PageQuery } from "./page-query.ts";
import { ascending, countBefore, descending } from "./sorted-index.ts";
import type { Row, RowIndex } from "./row.ts";
import type { StoredRecord, Table } from "./table.ts";

/** Rows that one filter of a query leaves over. */
export interface RowSet<T> {
  /** Or what it costs to go through them, in rows. */
  size: number;
  /** In no order that counts. */
  rows: () => Iterable<Row<T>>;
}

/** A filter's rows, where it can also leave out those beyond the bounds of creation. */
export interface FilterRows<T> {
  /** Which part of all rows the filter leaves over by itself. */
  share: number;
  set: RowSet<T>;
}

/** What each filter leaves over. */
export function filterRows<T extends StoredRecord>(
  table: Table<T>,
  query: PageQuery<T>,
): FilterRows<T>[] {
  const alone = (set: RowSet<T>) => ({ set, share: shareOf(set.size, table) });
  const known = query.among?.flatMap((id) => table.row(id) ?? []);
  return [
    ...(known === undefined ? [] : [alone({ size: known.length, rows: () => new Set(known) })]),
    ...wordRows(table, query),
    ...Object.entries(query.anyOf ?? {}).map(([field, values]) => {
      const indexes = [...new Set(values)].flatMap((value) => table.group(field, value) ?? []);
      const share = shareOf(sizeOf(indexes), table);
      return { share, set: union(indexes.map((index) => createdSpan(index, query))) };
    }),
    ...Object.entries(query.within ?? {}).map(([field, { least, most }]) => {
      const { index, keyOf } = table.amount(field);
      return alone(
        span(
          index,
          (row) => keyOf(row.value) >= least,
          (row) => keyOf(row.value) > most,
        ),
      );
    }),
    alone(createdSpan(table.byCreation, query)),
  ];
}

function shareOf<T extends StoredRecord>(size: number, { byCreation }: Table<T>): number {
  return byCreation.size === 0 ? 0 : Math.min(1, size / byCreation.size);
}

/** What a row costs that is only passed, to one whose record is looked at. */
const costOfPassing = 1 / 8;

/** Those that hold a word, and those that hold both of the two rarest. */
function wordRows<T extends StoredRecord>(table: Table<T>, query: PageQuery<T>): FilterRows<T>[] {
  const words = (query.words ?? [])
    .flatMap((word) => table.words?.startingWith(word) ?? [])
    .sort((a, b) => a.size - b.size);
  const sets = words.map((set) => ({ set, share: shareOf(set.size, table) }));
  const [first, second] = words.flatMap(({ ordered }) => ordered ?? []);
  if (first === undefined || second === undefined) return sets;
  const size = Math.ceil((first.size + second.size) * costOfPassing);
  return [...sets, { share: 1, set: { size, rows: () => rowsInBoth(first, second) } }];
}

/** The rows of an index in order of creation that lie within a query's bounds of creation. */
export function createdSpan<T>(
  index: RowIndex<T>,
  { createdFromMs, createdBeforeMs }: PageQuery<T>,
): RowSet<T> {
  if (createdFromMs === undefined && createdBeforeMs === undefined) {
    // Most lists want the newest first: what is looked at later is then seldom better.
    return { size: index.size, rows: () => descending(index) };
  }
  return span(
    index,
    (row) => row.createdAtMs >= (createdFromMs ?? -Infinity),
    (row) => row.createdAtMs >= (createdBeforeMs ?? Infinity),
  );
}

function union<T>(sets: readonly RowSet<T>[]): RowSet<T> {
  return {
    size: sizeOf(sets),
    *rows() {
      for (const set of sets) yield* set.rows();
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

export function sizeOf(parts: readonly { size: number }[]): number {
  return parts.reduce((sum, { size }) => sum + size, 0);
}
