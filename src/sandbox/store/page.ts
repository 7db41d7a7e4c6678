import type { SortedIndex } from "./sorted-index.ts";
import { ascending, createSortedIndex, descending, insertSorted } from "./sorted-index.ts";
import type { Row, StoredRecord, Table } from "./table.ts";
import { compareByCreation } from "./table.ts";

export interface PageQuery<T> {
  /** Grouped fields that must have one of these values. */
  anyOf?: Record<string, readonly string[]>;
  createdFromMs?: number;
  createdBeforeMs?: number;
  /** The only records that can be meant, where they are few and known. */
  among?: readonly string[];
  /** What no index answers. */
  test?: (record: T) => boolean;
  /** `created_at`, or another sort field. */
  sortField: string;
  /** For a sort field without an index: how its values compare. */
  compareBy?: (a: T, b: T) => number;
  descending: boolean;
  limit: number;
  /** The record after which (in list order), or before which, the page lies. */
  after?: Row<T>;
  before?: Row<T>;
}

export interface Page<T> {
  records: T[];
  /** Another item follows in the direction of paging. */
  hasMore: boolean;
}

/**
 * One page of a table. By order of creation it costs a search and the rows of the page, plus the rows
 * that only `test` refuses; the smallest group that a filter names is walked instead of the table.
 */
export function readPage<T extends StoredRecord>(table: Table<T>, query: PageQuery<T>): Page<T> {
  const order = orderOf(table, query);
  const backward = query.before !== undefined;
  const downward = query.descending !== backward;
  const cursor = query.after ?? query.before;
  const walked = mergeWalk(order, downward, cursor, query);

  const records: T[] = [];
  let hasMore = false;
  for (const row of walked) {
    if (!isWanted(table, row, query)) continue;
    if (records.length === query.limit) {
      hasMore = true;
      break;
    }
    records.push(row.value);
  }
  if (backward) records.reverse();
  return { records, hasMore };
}

interface Order<T> {
  indexes: SortedIndex<Row<T>>[];
  compare: (a: Row<T>, b: Row<T>) => number;
  /** Whether the order is that of creation, so that the bounds of time are bounds of the walk. */
  byTime: boolean;
}

function orderOf<T extends StoredRecord>(table: Table<T>, query: PageQuery<T>): Order<T> {
  const candidates = Object.entries(query.anyOf ?? {}).map(([field, values]) => {
    const indexes = [...new Set(values)].flatMap((value) => table.group(field, value) ?? []);
    return { indexes, size: indexes.reduce((sum, index) => sum + index.size, 0) };
  });
  if (query.among !== undefined) {
    const few = createSortedIndex<Row<T>>(compareByCreation);
    for (const id of query.among) {
      const row = table.row(id);
      if (row !== undefined) insertSorted(few, row);
    }
    candidates.push({ indexes: [few], size: few.size });
  }
  candidates.sort((a, b) => a.size - b.size);
  const smallest = candidates[0];
  if (query.sortField === "created_at") {
    const indexes = smallest?.indexes ?? [table.byCreation];
    return { indexes, compare: compareByCreation, byTime: true };
  }
  const sorted = table.sorted(query.sortField);
  const compare = compareWith(query);
  if (sorted !== undefined && smallest === undefined) {
    return { indexes: [sorted], compare, byTime: false };
  }
  // A small table, or one group of a large one: put in order for this one answer.
  const collected = createSortedIndex(compare);
  for (const index of smallest?.indexes ?? [table.byCreation]) {
    for (const row of ascending(index)) insertSorted(collected, row);
  }
  return { indexes: [collected], compare, byTime: false };
}

function compareWith<T extends StoredRecord>(
  query: PageQuery<T>,
): (a: Row<T>, b: Row<T>) => number {
  const { compareBy } = query;
  if (compareBy === undefined) throw new Error(`no way to sort by ${query.sortField}`);
  return (a, b) => compareBy(a.value, b.value) || compareByCreation(a, b);
}

function* mergeWalk<T extends StoredRecord>(
  order: Order<T>,
  downward: boolean,
  cursor: Row<T> | undefined,
  query: PageQuery<T>,
): IterableIterator<Row<T>> {
  const { createdFromMs = -Infinity, createdBeforeMs = Infinity } = query;
  const isPastCursor = (row: Row<T>) =>
    cursor === undefined || order.compare(row, cursor) * (downward ? -1 : 1) > 0;
  const walks = order.indexes.map((index) => {
    if (!order.byTime) {
      return downward ? descending(index, isPastCursor) : ascending(index, isPastCursor);
    }
    return downward
      ? descending(index, (row) => row.createdAtMs < createdBeforeMs && isPastCursor(row))
      : ascending(index, (row) => row.createdAtMs >= createdFromMs && isPastCursor(row));
  });
  for (const row of merge(walks, (a, b) => order.compare(a, b) * (downward ? -1 : 1))) {
    const ended = downward ? row.createdAtMs < createdFromMs : row.createdAtMs >= createdBeforeMs;
    if (order.byTime && ended) return;
    yield row;
  }
}

function* merge<R>(walks: IterableIterator<R>[], compare: (a: R, b: R) => number): Iterable<R> {
  const [only] = walks;
  if (only === undefined) return;
  if (walks.length === 1) {
    yield* only;
    return;
  }
  const heads = walks.flatMap((walk) => {
    const first = walk.next();
    return first.done === true ? [] : [{ walk, row: first.value }];
  });
  while (heads.length > 0) {
    let next = 0;
    for (let i = 1; i < heads.length; i++) {
      if (compare((heads[i] as { row: R }).row, (heads[next] as { row: R }).row) < 0) next = i;
    }
    const head = heads[next] as (typeof heads)[number];
    yield head.row;
    const following = head.walk.next();
    if (following.done === true) heads.splice(next, 1);
    else head.row = following.value;
  }
}

function isWanted<T extends StoredRecord>(
  table: Table<T>,
  row: Row<T>,
  query: PageQuery<T>,
): boolean {
  if (row.createdAtMs < (query.createdFromMs ?? -Infinity)) return false;
  if (row.createdAtMs >= (query.createdBeforeMs ?? Infinity)) return false;
  for (const [field, values] of Object.entries(query.anyOf ?? {})) {
    const key = table.keyOf(field)?.(row.value);
    if (key === null || key === undefined || !values.includes(key)) return false;
  }
  return query.test === undefined || query.test(row.value);
}
