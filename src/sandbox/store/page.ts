import { bestOf } from "./best-of.ts";
import { filterOf } from "./page-filter.ts";
import type { PageQuery } from "./page-query.ts";
import type { RowSet } from "./row-sets.ts";
import { rowSets } from "./row-sets.ts";
import type { StoredRecord, Table } from "./table.ts";
import type { Walk } from "./walk.ts";
import { planWalk, walkRows } from "./walk.ts";

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
  const sets = rowSets(table, query);
  const smallest = sets.reduce((a, b) => (b.size < a.size ? b : a));
  const walk = planWalk(table, query, Math.min(1, wanted / matchesOf(sets)));
  const isWanted = filterOf(table, query);
  const found =
    smallest.size < walk.expected
      ? null
      : firstOf(walkRows(walk, query), isWanted, wanted, smallest.size);
  const rows = found ?? bestOf(smallest.rows(), isWanted, inOrder(walk), wanted, walk.cursor);
  const hasMore = rows.length > query.limit;
  const records = rows.slice(0, query.limit).map(({ value }) => value);
  if (query.before !== undefined) records.reverse();
  return { records, hasMore };
}

function inOrder<T>({ compare, downward }: Walk<T>): Walk<T>["compare"] {
  return downward ? (a, b) => compare(b, a) : compare;
}

/** How many rows pass all filters, were these independent of each other. */
function matchesOf<T>([all, ...filtered]: [RowSet<T>, ...RowSet<T>[]]): number {
  return filtered.reduce((left, { size }) => left * Math.min(1, size / all.size), all.size);
}

/** The first `wanted` rows that match, or all there are; null once more than `most` rows were looked at. */
function firstOf<R>(
  rows: Iterable<R>,
  isWanted: (row: R) => boolean,
  wanted: number,
  most: number,
): R[] | null {
  const found: R[] = [];
  let seen = 0;
  for (const row of rows) {
    seen += 1;
    if (seen > most) return null;
    if (!isWanted(row)) continue;
    found.push(row);
    if (found.length === wanted) break;
  }
  return found;
}
