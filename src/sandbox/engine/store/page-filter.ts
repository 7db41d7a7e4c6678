import {
  type Row,
  type RowIndex,
  type Zone,
  ascending,
  compareByCreation,
  countBefore,
  descending,
} from "./sorted-index.ts";
import { type StoredRecord, type Table, creationZone } from "./table.ts";

/** What a page is asked to hold. */
export interface PageQuery<T> {
  /** Grouped fields that must have one of these values. */
  anyOf?: Record<string, readonly string[]>;
  createdFromMs?: number;
  createdBeforeMs?: number;
  /** Amounts that must lie within bounds, both included. */
  within?: Record<string, Bounds>;
  /** The only records that can be meant, where they are few and known. */
  among?: readonly string[];
  /** Words that the table's text must hold, each at least as the beginning of one. */
  words?: readonly string[];
  /** What no index answers. */
  test?: (record: T) => boolean;
  /** `created_at`, or another sort field of the table. */
  sortField: string;
  descending: boolean;
  limit: number;
  /** The record after which (in list order), or before which, the page lies. */
  after?: Row<T>;
  before?: Row<T>;
}

interface Bounds {
  least: number;
  most: number;
}

/** Whether a row passes every filter of a query. */
export function filterOf<T extends StoredRecord>(
  table: Table<T>,
  query: PageQuery<T>,
): (row: Row<T>) => boolean {
  const { createdFromMs = -Infinity, createdBeforeMs = Infinity, test, words } = query;
  const groups = Object.entries(query.anyOf ?? {}).map(([field, values]) => ({
    keyOf: table.keyOf(field),
    values,
  }));
  const amounts = Object.entries(query.within ?? {}).map(([field, bounds]) => ({
    keyOf: table.amount(field).keyOf,
    ...bounds,
  }));
  const among = query.among === undefined ? undefined : new Set(query.among);
  return (row) => {
    if (row.createdAtMs < createdFromMs || row.createdAtMs >= createdBeforeMs) return false;
    for (const { keyOf, values } of groups) {
      const key = keyOf?.(row.value);
      if (key === null || key === undefined || !values.includes(key)) return false;
    }
    for (const { keyOf, least, most } of amounts) {
      const amount = keyOf(row.value);
      if (amount < least || amount > most) return false;
    }
    if (among !== undefined && !among.has(row.id)) return false;
    if (words !== undefined && table.words?.holds(row, words) !== true) return false;
    return test === undefined || test(row.value);
  };
}

/** Whether a chunk with a zone can hold a row that passes. */
export function zoneTest<T extends StoredRecord>(
  table: Table<T>,
  query: PageQuery<T>,
): (zone: Zone) => boolean {
  const { createdFromMs = -Infinity, createdBeforeMs = Infinity } = query;
  const bounds = Object.entries(query.within ?? {}).map(([field, { least, most }]) => ({
    at: table.amount(field).zone,
    least,
    most,
  }));
  return (zone) => {
    const created = zone[creationZone];
    if (created === undefined) return true;
    if (created.greatest < createdFromMs || created.least >= createdBeforeMs) return false;
    return bounds.every(({ at, least, most }) => {
      const measured = zone[at];
      return measured === undefined || (measured.greatest >= least && measured.least <= most);
    });
  };
}

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

/** The rows that are in both of two indexes in order of creation: a step along each is far cheaper than a look at a record. */
function* rowsInBoth<T>(first: RowIndex<T>, second: RowIndex<T>): IterableIterator<Row<T>> {
  const others = ascending(second);
  let other = others.next();
  for (const row of ascending(first)) {
    while (other.done !== true && compareByCreation(other.value, row) < 0) other = others.next();
    if (other.done === true) return;
    if (other.value === row) yield row;
  }
}
