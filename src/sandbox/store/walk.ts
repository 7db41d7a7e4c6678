import { mergeSorted } from "./merge-sorted.ts";
import { zoneTest } from "./page-filter.ts";
import type { PageQuery } from "./page-query.ts";
import { createdSpan, sizeOf } from "./row-sets.ts";
import type { Zone } from "./sorted-index.ts";
import { ascending, descending } from "./sorted-index.ts";
import type { SpanOrder } from "./span-order.ts";
import { indexesAt } from "./span-order.ts";
import type { Row, RowIndex } from "./row.ts";
import type { StoredRecord, Table } from "./table.ts";
import { compareByCreation } from "./row.ts";

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
export function planWalk<T extends StoredRecord>(
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
export function walkRows<T>(
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
