import { mergeSorted } from "./merge-sorted.ts";
import { zoneTest } from "./page-filter.ts";
import type { PageQuery } from "./page-query.ts";
import { createdSpan, sizeOf } from "./row-sets.ts";
import type { Zone } from "./sorted-index.ts";
import { ascending, countBefore, descending } from "./sorted-index.ts";
import type { Row, RowIndex } from "./row.ts";
import type { StoredRecord, Table, TableOrder } from "./table.ts";
import { compareByCreation } from "./row.ts";

/** A way along the wanted order of a list. */
export interface Walk<T> {
  /** Together they hold every row that can be meant. */
  indexes: readonly RowIndex<T>[];
  /** How many rows it passes until it has met as many as are wanted, were filters and order independent. */
  expected: number;
  compare: (a: Row<T>, b: Row<T>) => number;
  downward: boolean;
  cursor: Row<T> | undefined;
  mayHold: (zone: Zone) => boolean;
}

/** Which rows a walk passes. */
interface Way<T> {
  /** Together they hold every row that can be meant. */
  indexes: readonly RowIndex<T>[];
  /** How many rows lie on it, without those before the first that can be meant. */
  size: number;
  /** How many those are at the most: they are passed one by one. */
  lead: number;
}

/**
 * The shortest way that has the order: through a group, a word, or the whole table. `share` says which part of the rows on a way has to
 * be passed to meet as many matches as are wanted.
 */
export function planWalk<T extends StoredRecord>(
  table: Table<T>,
  query: PageQuery<T>,
  share: number,
): Walk<T> {
  const sort = query.sortField === "created_at" ? undefined : query.sortField;
  const order = sort === undefined ? undefined : table.sorted(sort);
  if (sort !== undefined && order === undefined) throw new Error(`no way to sort by ${sort}`);
  const downward = query.descending !== (query.before !== undefined);
  const ways =
    order === undefined ? waysByTime(table, query) : waysByOther(table, query, { order, downward });
  const walks = ways.map(({ indexes, size, lead }) => ({ indexes, expected: lead + size * share }));
  return {
    ...walks.reduce((a, b) => (b.expected < a.expected ? b : a)),
    compare: order?.compare ?? compareByCreation,
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
  return [[table.byCreation], ...groupsInOrder(table, query), ...words].map((indexes) => ({
    indexes,
    size: indexes.reduce((sum, index) => sum + (createdSpan(index, query) ?? index).size, 0),
    lead: 0,
  }));
}

/** Along another order the bounds of time choose the spans; a group has none, so that what lies beyond the bounds is passed. */
function waysByOther<T extends StoredRecord>(
  table: Table<T>,
  query: PageQuery<T>,
  { order, downward }: { order: TableOrder<T>; downward: boolean },
): Way<T>[] {
  const { createdFromMs = -Infinity, createdBeforeMs = Infinity } = query;
  const spans = order.within(createdFromMs, createdBeforeMs);
  const older = shareBefore(table, createdFromMs);
  const newer = 1 - shareBefore(table, createdBeforeMs);
  const groups = groupsInOrder(table, query, query.sortField).map((indexes) => {
    const size = sizeOf(indexes);
    return { indexes, size: size * (1 - older - newer), lead: size * (downward ? newer : older) };
  });
  return [{ indexes: spans, size: sizeOf(spans), lead: 0 }, ...groups];
}

function shareBefore<T extends StoredRecord>({ byCreation }: Table<T>, ms: number): number {
  if (byCreation.size === 0 || ms === -Infinity) return 0;
  return ms === Infinity
    ? 1
    : countBefore(byCreation, (row) => row.createdAtMs >= ms) / byCreation.size;
}

function groupsInOrder<T extends StoredRecord>(
  table: Table<T>,
  query: PageQuery<T>,
  sort?: string,
): RowIndex<T>[][] {
  return Object.entries(query.anyOf ?? {}).flatMap(([field, values]) => {
    const groups = [...new Set(values)].map((value) => ({
      rows: table.group(field, value),
      ordered: table.group(field, value, sort),
    }));
    // A small group has no order but that of creation.
    const isOrdered = groups.every(({ rows, ordered }) => rows === undefined || ordered);
    return isOrdered ? [groups.flatMap(({ ordered }) => ordered ?? [])] : [];
  });
}

/** The rows of a walk from the cursor on; by time, within the bounds of time alone. */
export function* walkRows<T>(walk: Walk<T>, query: PageQuery<T>): Iterable<Row<T>> {
  const { createdFromMs = -Infinity, createdBeforeMs = Infinity, sortField } = query;
  const { cursor, downward, mayHold } = walk;
  const compare = (a: Row<T>, b: Row<T>) => walk.compare(a, b) * (downward ? -1 : 1);
  const isPastCursor = (row: Row<T>) => cursor === undefined || compare(row, cursor) > 0;
  const byTime = sortField === "created_at";
  const isStarted = !byTime
    ? isPastCursor
    : downward
      ? (row: Row<T>) => row.createdAtMs < createdBeforeMs && isPastCursor(row)
      : (row: Row<T>) => row.createdAtMs >= createdFromMs && isPastCursor(row);
  const walks = walk.indexes.map((index) =>
    downward ? descending(index, isStarted, mayHold) : ascending(index, isStarted, mayHold),
  );
  for (const row of mergeSorted(walks, compare)) {
    const ended = downward ? row.createdAtMs < createdFromMs : row.createdAtMs >= createdBeforeMs;
    if (byTime && ended) return;
    yield row;
  }
}
