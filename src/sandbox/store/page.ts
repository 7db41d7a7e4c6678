import { bestOf } from "./best-of.ts";
import { filterOf } from "./page-filter.ts";
import type { PageQuery } from "./page-query.ts";
import type { Row } from "./row.ts";
import { filterRows } from "./row-sets.ts";
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
