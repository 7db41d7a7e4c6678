import { bestOf } from "./best-of.ts";
import { fewRows, sizeOf } from "./few-rows.ts";
import { mergeSorted } from "./merge-sorted.ts";
import { filterOf, zoneTest } from "./page-filter.ts";
import type { PageQuery } from "./page-query.ts";
import type { Zone } from "./sorted-index.ts";
import { ascending, descending } from "./sorted-index.ts";
import type { Row, RowIndex, StoredRecord, Table } from "./table.ts";
import { compareByCreation } from "./table.ts";

export interface Page<T> {
  records: T[];
  /** Another item follows in the direction of paging. */
  hasMore: boolean;
}

/**
 * One page of a table, without a scan of it. What a filter leaves over is either few enough to be looked through, or so many
 * that a walk along the wanted order soon meets enough of them; parts of the walk whose zones rule out a match are skipped.
 */
export function readPage<T extends StoredRecord>(table: Table<T>, query: PageQuery<T>): Page<T> {
  const backward = query.before !== undefined;
  const walk = planWalk(table, query);
  const compare = walk.downward
    ? (a: Row<T>, b: Row<T>) => walk.compare(b, a)
    : (a: Row<T>, b: Row<T>) => walk.compare(a, b);
  const isWanted = filterOf(table, query);
  const few = fewRows(table, query, walk);
  const rows =
    few === null
      ? firstOf(walkRows(walk, query), isWanted, query.limit + 1)
      : bestOf(few, isWanted, compare, query.limit + 1, walk.cursor);
  const hasMore = rows.length > query.limit;
  const records = rows.slice(0, query.limit).map(({ value }) => value);
  if (backward) records.reverse();
  return { records, hasMore };
}

interface Walk<T> {
  /** Together they hold every row that can be meant. Empty when no index has the order. */
  indexes: RowIndex<T>[];
  size: number;
  compare: (a: Row<T>, b: Row<T>) => number;
  downward: boolean;
  cursor: Row<T> | undefined;
  mayHold: (zone: Zone) => boolean;
}

/** The way along the wanted order: through the smallest group that has it, else through the table. */
function planWalk<T extends StoredRecord>(table: Table<T>, query: PageQuery<T>): Walk<T> {
  const byTime = query.sortField === "created_at";
  const sort = byTime ? undefined : query.sortField;
  const whole = sort === undefined ? table.byCreation : table.sorted(sort);
  const choices = [whole === undefined ? [] : [whole]];
  for (const [field, values] of Object.entries(query.anyOf ?? {})) {
    const groups = [...new Set(values)].map((value) => ({
      rows: table.group(field, value),
      ordered: table.group(field, value, sort),
    }));
    // A small group has no order but that of creation.
    if (groups.some(({ rows, ordered }) => rows !== undefined && ordered === undefined)) continue;
    choices.push(groups.flatMap(({ ordered }) => ordered ?? []));
  }
  const sized = choices.map((indexes) => ({ indexes, size: sizeOf(indexes) }));
  const [first, ...others] = whole === undefined ? sized.slice(1) : sized;
  const smallest = others.reduce((a, b) => (b.size < a.size ? b : a), first ?? noWalk);
  return {
    ...smallest,
    compare: byTime ? compareByCreation : compareWith(query),
    downward: query.descending !== (query.before !== undefined),
    cursor: query.after ?? query.before,
    mayHold: zoneTest(table, query),
  };
}

const noWalk = { indexes: [], size: Infinity };

function compareWith<T extends StoredRecord>(
  query: PageQuery<T>,
): (a: Row<T>, b: Row<T>) => number {
  const { compareBy } = query;
  if (compareBy === undefined) throw new Error(`no way to sort by ${query.sortField}`);
  return (a, b) => compareBy(a.value, b.value) || compareByCreation(a, b);
}

/** The rows of a walk from the cursor on; by time, within the bounds of time alone. */
function* walkRows<T>(walk: Walk<T>, query: PageQuery<T>): Iterable<Row<T>> {
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

function firstOf<R>(rows: Iterable<R>, isWanted: (row: R) => boolean, count: number): R[] {
  const found: R[] = [];
  for (const row of rows) {
    if (!isWanted(row)) continue;
    found.push(row);
    if (found.length === count) break;
  }
  return found;
}
