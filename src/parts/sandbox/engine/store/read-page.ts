import { type Row, type StoredRecord, type Table, compareByCreation, countBefore } from "./table.ts";

export interface PageQuery<T> {
  /** Grouped fields that must have one of these values. */
  anyOf?: Record<string, readonly string[]>;
  createdFromMs?: number;
  createdBeforeMs?: number;
  /** The only candidates, where they are few and known. */
  among?: readonly string[];
  /** All other filters. */
  test?: (record: T) => boolean;
  /** `created_at`, or another sort field of the table. */
  sortField: string;
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

type Compare<T> = (a: Row<T>, b: Row<T>) => number;

/**
 * One page of a table. In order of creation it walks from the cursor until the page is full, through the requested
 * group or else through all rows. In any other order it reads every row within the bounds of creation.
 */
export function readPage<T extends StoredRecord>(table: Table<T>, query: PageQuery<T>): Page<T> {
  const { sortField, limit, before, after } = query;
  const downward = query.descending !== (before !== undefined);
  const upwards = sortField === "created_at" ? compareByCreation : comparing(table, sortField);
  const compare: Compare<T> = downward ? (a, b) => upwards(b, a) : upwards;
  const cursor = after ?? before;
  const isAhead = (row: Row<T>) => cursor === undefined || compare(row, cursor) > 0;
  const isWanted = filterOf(table, query);

  const rows = candidates(table, query);
  const { createdFromMs = -Infinity, createdBeforeMs = Infinity } = query;
  let from = countBefore(rows, ({ createdAtMs }) => createdAtMs >= createdFromMs);
  let to = countBefore(rows, ({ createdAtMs }) => createdAtMs >= createdBeforeMs);
  if (sortField === "created_at") {
    // In order of creation the cursor is a bound, too.
    const place = countBefore(rows, (row) => isAhead(row) !== downward);
    if (downward) to = Math.min(to, place);
    else from = Math.max(from, place);
  }
  const inBounds = between(rows, { from, to, downward });
  const found =
    sortField === "created_at"
      ? first(inBounds, isWanted, limit + 1)
      : best(inBounds, (row) => isAhead(row) && isWanted(row), compare, limit + 1);
  const records = found.slice(0, limit).map(({ value }) => value);
  if (before !== undefined) records.reverse();
  return { records, hasMore: found.length > limit };
}

/** Orders by a field, then by creation. */
function comparing<T extends StoredRecord>(table: Table<T>, field: string): Compare<T> {
  const keyOf = table.sortKey(field);
  if (keyOf === undefined) throw new Error(`no way to sort by ${field}`);
  return (a, b) => {
    const [keyA, keyB] = [keyOf(a.value), keyOf(b.value)];
    return keyA < keyB ? -1 : keyA > keyB ? 1 : compareByCreation(a, b);
  };
}

/** The candidate rows, in order of creation: the smallest set that a lookup gives. */
function candidates<T extends StoredRecord>(table: Table<T>, { among, anyOf = {} }: PageQuery<T>): readonly Row<T>[] {
  if (among !== undefined) {
    return [...new Set(among)].flatMap((id) => table.row(id) ?? []).sort(compareByCreation);
  }
  return Object.entries(anyOf)
    .flatMap(([field, [value, ...others]]) =>
      value === undefined || others.length > 0 ? [] : [table.group(field, value)],
    )
    .reduce((a, b) => (b.length < a.length ? b : a), table.byCreation);
}

function filterOf<T extends StoredRecord>(
  table: Table<T>,
  { anyOf = {}, test = () => true }: PageQuery<T>,
): (row: Row<T>) => boolean {
  const groups = Object.entries(anyOf).map(([field, values]) => ({
    keyOf: table.groupKey(field),
    values: new Set<string | null>(values),
  }));
  return ({ value }) => groups.every(({ keyOf, values }) => values.has(keyOf(value))) && test(value);
}

function* between<R>(
  rows: readonly R[],
  { from, to, downward }: { from: number; to: number; downward: boolean },
): Iterable<R> {
  if (downward) for (let at = to - 1; at >= from; at--) yield rows[at] as R;
  else for (let at = from; at < to; at++) yield rows[at] as R;
}

function first<R>(rows: Iterable<R>, isWanted: (row: R) => boolean, count: number): R[] {
  const found: R[] = [];
  for (const row of rows) {
    if (isWanted(row)) found.push(row);
    if (found.length === count) break;
  }
  return found;
}

/**
 * The first `count` matching rows in the given order, from rows in any order. Once `count` were found it takes one
 * comparison per row.
 */
function best<R>(
  rows: Iterable<R>,
  isWanted: (row: R) => boolean,
  compare: (a: R, b: R) => number,
  count: number,
): R[] {
  const found: R[] = [];
  for (const row of rows) {
    const last = found[count - 1];
    if (last !== undefined && compare(row, last) >= 0) continue;
    if (!isWanted(row)) continue;
    if (last !== undefined) found.pop();
    const place = countBefore(found, (other) => compare(other, row) > 0);
    found.splice(place, 0, row);
  }
  return found;
}
