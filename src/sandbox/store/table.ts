import type { Row, RowIndex } from "./row.ts";
import { compareByCreation } from "./row.ts";
import { ascending, createSortedIndex, insertSorted, removeSorted } from "./sorted-index.ts";
import { createSpans } from "./spans.ts";
import type { WordIndex } from "./word-index.ts";
import { createWordIndex } from "./word-index.ts";

/** What every stored record has. Records are never changed, only replaced: a reference to one is a snapshot. */
export interface StoredRecord {
  readonly id: string;
  readonly created_at: string;
}

export interface Table<T extends StoredRecord> {
  readonly size: number;
  get(id: string): T | undefined;
  row(id: string): Row<T> | undefined;
  insert(record: T): void;
  /** Puts a newer state in the place of the record with the same id and `created_at`. */
  replace(record: T): void;
  delete(id: string): void;
  /** All records, in order of creation. */
  all(): T[];
  /** The records with one value of a grouped field, in order of creation. */
  inGroup(field: string, value: string): T[];
  readonly byCreation: RowIndex<T>;
  /** The rows with one value of a grouped field, in order of creation, or by a sort field where the group is large. */
  group(field: string, value: string, sort?: string): RowIndex<T> | undefined;
  keyOf(field: string): ((record: T) => string | null) | undefined;
  /** How a sort field orders rows; undefined when lists cannot be sorted by it. */
  sorted(field: string): TableOrder<T> | undefined;
  /** Which rows hold a word, for a table whose text is searched. */
  readonly words: WordIndex<T> | undefined;
  /** Rows in order of an amount that lists filter by, with its place among the measures of zones. */
  amount(field: string): { index: RowIndex<T>; keyOf: (record: T) => number; zone: number };
}

/** Rows in order of a sort field. */
export interface TableOrder<T> {
  compare: (a: Row<T>, b: Row<T>) => number;
  /** Together they hold every row that was created within bounds, the second excluded. */
  within: (fromMs: number, beforeMs: number) => RowIndex<T>[];
}

export interface TableOptions<T> {
  /** Fields that lists filter by: one index for each value. A null key is in no group. */
  groups?: Record<string, (record: T) => string | null>;
  /** Groups of few values with many rows each: these have every sort of the table as well. */
  large?: readonly string[];
  /** Fields that lists sort by, beside the order of creation. */
  sorts?: Record<string, (record: T) => string | number>;
  /** Amounts of which lists filter by a range. */
  amounts?: Record<string, (record: T) => number>;
  /** The text that lists search. */
  text?: (record: T) => string;
  /** For tests: rows of a span. */
  rowsPerSpan?: number;
}

/** The measure of zones that the time of creation is; amounts follow. */
export const creationZone = 0;

/** In order of a key, then of creation. */
function comparingBy<T>(keyOf: (record: T) => string | number) {
  return (a: Row<T>, b: Row<T>): number => {
    const keyA = keyOf(a.value);
    const keyB = keyOf(b.value);
    return keyA < keyB ? -1 : keyA > keyB ? 1 : compareByCreation(a, b);
  };
}

export function createTable<T extends StoredRecord>(options: TableOptions<T> = {}): Table<T> {
  const rows = new Map<string, Row<T>>();
  const amounts = Object.entries(options.amounts ?? {}).map(([field, keyOf]) => ({
    field,
    keyOf,
    index: createSortedIndex<Row<T>>(comparingBy(keyOf)),
  }));
  const measures = [
    (row: Row<T>) => row.createdAtMs,
    ...amounts.map(
      ({ keyOf }) =>
        (row: Row<T>) =>
          keyOf(row.value),
    ),
  ];
  const byCreation = createSortedIndex<Row<T>>(compareByCreation, measures);
  const sorts = Object.entries(options.sorts ?? {}).map(([field, keyOf]) => ({
    field,
    keyOf,
    compare: comparingBy(keyOf),
  }));
  const spans = createSpans(
    sorts.map(({ compare }) => compare),
    measures,
    options.rowsPerSpan,
  );
  const groups = Object.entries(options.groups ?? {}).map(([field, keyOf]) => ({
    field,
    keyOf,
    isLarge: options.large?.includes(field) ?? false,
    /** For each value: by creation, then by each sort where the group is large. */
    indexes: new Map<string, RowIndex<T>[]>(),
  }));
  type Group = (typeof groups)[number];
  const textOf = options.text;
  const words = textOf === undefined ? undefined : createWordIndex(textOf);

  function indexesOf(group: Group, key: string): RowIndex<T>[] {
    let indexes = group.indexes.get(key);
    if (indexes === undefined) {
      indexes = group.isLarge
        ? [compareByCreation<T>, ...sorts.map(({ compare }) => compare)].map((compare) =>
            createSortedIndex(compare, measures),
          )
        : [createSortedIndex(compareByCreation<T>)];
      group.indexes.set(key, indexes);
    }
    return indexes;
  }

  function addToGroup(group: Group, row: Row<T>): void {
    const key = group.keyOf(row.value);
    if (key !== null) for (const index of indexesOf(group, key)) insertSorted(index, row);
  }

  function removeFromGroup(group: Group, row: Row<T>): void {
    const key = group.keyOf(row.value);
    const indexes = key === null ? undefined : group.indexes.get(key);
    if (key === null || indexes === undefined) return;
    for (const index of indexes) removeSorted(index, row);
    if (indexes[0]?.size === 0) group.indexes.delete(key);
  }

  function index(row: Row<T>): void {
    insertSorted(byCreation, row);
    for (const group of groups) addToGroup(group, row);
    for (const at of sorts.keys()) spans.insert(row, at);
    for (const amount of amounts) insertSorted(amount.index, row);
    words?.add(row);
  }

  function unindex(row: Row<T>): void {
    removeSorted(byCreation, row);
    for (const group of groups) removeFromGroup(group, row);
    for (const at of sorts.keys()) spans.remove(row, at);
    for (const amount of amounts) removeSorted(amount.index, row);
    words?.remove(row);
  }

  function group(field: string, value: string, sort?: string): RowIndex<T> | undefined {
    const indexes = groups.find((known) => known.field === field)?.indexes.get(value);
    if (sort === undefined) return indexes?.[0];
    const at = sorts.findIndex((known) => known.field === sort);
    return at < 0 ? undefined : indexes?.[1 + at];
  }

  return {
    get size() {
      return rows.size;
    },
    get: (id) => rows.get(id)?.value,
    row: (id) => rows.get(id),
    insert(record) {
      const createdAtMs = Date.parse(record.created_at);
      const span = spans.place(createdAtMs);
      const row = { id: record.id, createdAtMs, span, value: record };
      rows.set(record.id, row);
      index(row);
    },
    replace(record) {
      const row = rows.get(record.id);
      if (row === undefined) throw new Error(`no record ${record.id} to replace`);
      const previous = row.value;
      if (amounts.some(({ keyOf }) => keyOf(previous) !== keyOf(record))) {
        // Zones count on amounts that stay: a row whose amount is changed silently is a new one.
        unindex(row);
        row.value = record;
        index(row);
        return;
      }
      const moved = Array.from(sorts.keys()).filter((at) => {
        const { keyOf } = sorts[at] as (typeof sorts)[number];
        return keyOf(previous) !== keyOf(record);
      });
      const regrouped = groups.filter(
        ({ keyOf, isLarge }) => keyOf(previous) !== keyOf(record) || (isLarge && moved.length > 0),
      );
      const isReworded = textOf !== undefined && textOf(previous) !== textOf(record);
      for (const at of moved) spans.remove(row, at);
      if (isReworded) words?.remove(row);
      for (const changed of regrouped) removeFromGroup(changed, row);
      row.value = record;
      if (isReworded) words?.add(row);
      for (const at of moved) spans.insert(row, at);
      for (const changed of regrouped) addToGroup(changed, row);
    },
    delete(id) {
      const row = rows.get(id);
      if (row === undefined) return;
      unindex(row);
      rows.delete(id);
    },
    all: () => Array.from(ascending(byCreation), (row) => row.value),
    inGroup(field, value) {
      const found = group(field, value);
      return found === undefined ? [] : Array.from(ascending(found), (row) => row.value);
    },
    byCreation,
    group,
    keyOf: (field) => groups.find((known) => known.field === field)?.keyOf,
    sorted(field) {
      const at = sorts.findIndex((sort) => sort.field === field);
      const sort = sorts[at];
      if (sort === undefined) return undefined;
      const { compare } = sort;
      return { compare, within: (fromMs, beforeMs) => spans.within(at, fromMs, beforeMs) };
    },
    words,
    amount(field) {
      const at = amounts.findIndex((known) => known.field === field);
      const found = amounts[at];
      if (found === undefined) throw new Error(`no amount ${field}`);
      return { index: found.index, keyOf: found.keyOf, zone: creationZone + 1 + at };
    },
  };
}
