import { createHeap } from "../heap.ts";
import { type SpanOrder, indexesAt } from "./group.ts";
import {
  type PageQuery,
  createdSpan,
  filterOf,
  filterRows,
  sizeOf,
  zoneTest,
} from "./page-filter.ts";
import {
  type Row,
  type RowIndex,
  type Zone,
  ascending,
  compareByCreation,
  descending,
} from "./sorted-index.ts";
import type { StoredRecord, Table } from "./table.ts";

export interface Page<T> {
  records: T[];
  /** Another item follows in the direction of paging. */
  hasMore: boolean;
}

/**
 * One page of a table, without a scan of it. What a filter leaves over is either few enough to be looked through, or so many
 * that a walk along the wanted order soon meets enough of them; parts of the walk whose zones rule out a match are skipped.
 * A walk that turns out longer than the smallest set, since filter and order hang together, is given up for that set.
 */
export function readPage<T extends StoredRecord>(table: Table<T>, query: PageQuery<T>): Page<T> {
  const wanted = query.limit + 1;
  const filters = filterRows(table, query);
  const smallest = filters.map(({ set }) => set).reduce((a, b) => (b.size < a.size ? b : a));
  // Were the filters independent of each other.
  const matches = filters.reduce((left, { share }) => left * share, table.size);
  const walk = planWalk(table, query, { matches, wanted });
  const isWanted = filterOf(table, query);
  const found =
    smallest.size < walk.expected ? null : firstOf(walk, query, isWanted, wanted, smallest.size);
  const rows = found ?? bestOf(smallest.rows(), isWanted, walk.compare, wanted, walk.cursor);
  const hasMore = rows.length > query.limit;
  const records = rows.slice(0, query.limit).map(({ value }) => value);
  if (query.before !== undefined) records.reverse();
  return { records, hasMore };
}

/** The first `wanted` rows that match, or all there are; null once more than `most` rows were looked at. */
function firstOf<T>(
  walk: Walk<T>,
  query: PageQuery<T>,
  isWanted: (row: Row<T>) => boolean,
  wanted: number,
  most: number,
): Row<T>[] | null {
  let seen = 0;
  // Past the limit every row is taken, so that the walk comes to its end at once.
  const isWantedOrTooFar = (row: Row<T>) => ++seen > most || isWanted(row);
  const found: Row<T>[] = [];
  for (const row of walkRows(walk, query, isWantedOrTooFar)) {
    if (seen > most) return null;
    found.push(row);
    if (found.length === wanted) break;
  }
  return found;
}

/** A way along the wanted order of a list. */
export interface Walk<T> {
  /** Together they hold every row that can be meant. */
  indexes: readonly RowIndex<T>[];
  /** How many rows it passes until it has met as many as are wanted, were filters and order independent. */
  expected: number;
  /** In the direction of the walk. */
  compare: (a: Row<T>, b: Row<T>) => number;
  downward: boolean;
  cursor: Row<T> | undefined;
  mayHold: (zone: Zone) => boolean;
}

/** Which rows a walk passes. */
interface Way<T> {
  /** Together they hold every row that can be meant. */
  indexes: readonly RowIndex<T>[];
  size: number;
}

/**
 * The shortest way that has the order: through a group, a word, or the whole table. `matches` is how many rows the query is thought to
 * have, `wanted` how many of them are.
 */
function planWalk<T extends StoredRecord>(
  table: Table<T>,
  query: PageQuery<T>,
  { matches, wanted }: { matches: number; wanted: number },
): Walk<T> {
  const sort = query.sortField === "created_at" ? undefined : query.sortField;
  const order = sort === undefined ? undefined : table.sorted(sort);
  if (sort !== undefined && order === undefined) throw new Error(`no way to sort by ${sort}`);
  const downward = query.descending !== (query.before !== undefined);
  const ways = order === undefined ? waysByTime(table, query) : waysByOther(table, query, order);
  // Each index of a way is looked through up to its first match.
  const walks = ways.map(({ indexes, size }) => {
    const looked = (size * (wanted + indexes.length)) / matches;
    return { indexes, expected: matches > 0 ? Math.min(size, looked) : size };
  });
  const compare = order?.compare ?? compareByCreation;
  return {
    ...walks.reduce((a, b) => (b.expected < a.expected ? b : a)),
    compare: downward ? (a, b) => compare(b, a) : compare,
    downward,
    cursor: query.after ?? query.before,
    mayHold: zoneTest(table, query),
  };
}

/** Along the creation of rows a walk starts and ends at the bounds of time. */
function waysByTime<T extends StoredRecord>(table: Table<T>, query: PageQuery<T>): Way<T>[] {
  const words = (query.words ?? []).flatMap((word) => {
    const ordered = table.words?.startingWith(word)?.ordered;
    return ordered === undefined ? [] : [[ordered]];
  });
  const groups = Object.entries(query.anyOf ?? {}).map(([field, values]) =>
    [...new Set(values)].flatMap((value) => table.group(field, value) ?? []),
  );
  return [[table.byCreation], ...groups, ...words].map((indexes) => ({
    indexes,
    size: sizeOf(indexes.map((index) => createdSpan(index, query))),
  }));
}

/** Along another order the bounds of time choose the spans. */
function waysByOther<T extends StoredRecord>(
  table: Table<T>,
  query: PageQuery<T>,
  order: SpanOrder<T>,
): Way<T>[] {
  const { createdFromMs = -Infinity, createdBeforeMs = Infinity } = query;
  const places = table.spans.covering(createdFromMs, createdBeforeMs);
  const ways = [[order], ...groupsInOrder(table, query)];
  return ways.map((orders) => {
    const indexes = orders.flatMap((each) => indexesAt(each, places));
    return { indexes, size: sizeOf(indexes) };
  });
}

function groupsInOrder<T extends StoredRecord>(
  table: Table<T>,
  query: PageQuery<T>,
): SpanOrder<T>[][] {
  return Object.entries(query.anyOf ?? {}).flatMap(([field, values]) => {
    const groups = [...new Set(values)].map((value) => ({
      rows: table.group(field, value),
      order: table.groupSorted(field, value, query.sortField),
    }));
    // A small group has no order but that of creation.
    const isOrdered = groups.every(({ rows, order }) => rows === undefined || order);
    return isOrdered ? [groups.flatMap(({ order }) => order ?? [])] : [];
  });
}

/**
 * The rows of a walk that `isWanted`, from the cursor on; by time, within the bounds of time alone. What is not wanted is left
 * out before the indexes are merged, which costs far more than a look at a row.
 */
function walkRows<T>(
  walk: Walk<T>,
  query: PageQuery<T>,
  isWanted: (row: Row<T>) => boolean,
): Iterable<Row<T>> {
  const { createdFromMs = -Infinity, createdBeforeMs = Infinity, sortField } = query;
  const { cursor, compare, downward, mayHold } = walk;
  const isPastCursor = (row: Row<T>) => cursor === undefined || compare(row, cursor) > 0;
  const byTime = sortField === "created_at";
  const isStarted = !byTime
    ? isPastCursor
    : downward
      ? (row: Row<T>) => row.createdAtMs < createdBeforeMs && isPastCursor(row)
      : (row: Row<T>) => row.createdAtMs >= createdFromMs && isPastCursor(row);

  function* wantedOf(index: RowIndex<T>): IterableIterator<Row<T>> {
    const along = downward ? descending : ascending;
    for (const row of along(index, isStarted, mayHold)) {
      const ended = downward ? row.createdAtMs < createdFromMs : row.createdAtMs >= createdBeforeMs;
      if (byTime && ended) return;
      if (isWanted(row)) yield row;
    }
  }
  return mergeSorted(walk.indexes.map(wantedOf), compare);
}

/** Several sorted walks as one. */
function* mergeSorted<R>(
  walks: readonly IterableIterator<R>[],
  compare: (a: R, b: R) => number,
): Iterable<R> {
  const [only] = walks;
  if (only !== undefined && walks.length === 1) {
    yield* only;
    return;
  }
  const heads = createHeap<{ walk: IterableIterator<R>; row: R }>(
    (a, b) => compare(a.row, b.row) < 0,
  );
  for (const walk of walks) {
    const first = walk.next();
    if (first.done !== true) heads.push({ walk, row: first.value });
  }
  for (let head = heads.pop(); head !== undefined; head = heads.pop()) {
    yield head.row;
    const following = head.walk.next();
    if (following.done !== true) heads.push({ walk: head.walk, row: following.value });
  }
}

/**
 * The first `count` wanted rows after a cursor, in order, of rows in any order. Costs a comparison a row once `count` were
 * found, instead of sorting them all.
 */
function bestOf<R>(
  rows: Iterable<R>,
  isWanted: (row: R) => boolean,
  compare: (a: R, b: R) => number,
  count: number,
  cursor: R | undefined,
): R[] {
  const best: R[] = [];
  for (const row of rows) {
    const last = best[count - 1];
    if (last !== undefined && compare(row, last) >= 0) continue;
    if (cursor !== undefined && compare(row, cursor) <= 0) continue;
    if (!isWanted(row)) continue;
    if (last !== undefined) best.pop();
    best.splice(placeOf(best, row, compare), 0, row);
  }
  return best;
}

function placeOf<R>(sorted: readonly R[], row: R, compare: (a: R, b: R) => number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compare(sorted[middle] as R, row) > 0) high = middle;
    else low = middle + 1;
  }
  return low;
}
