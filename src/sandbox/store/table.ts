import type { SortedIndex } from "./sorted-index.ts";
import { ascending, createSortedIndex, insertSorted, removeSorted } from "./sorted-index.ts";

/** What every stored record has. Records are never changed, only replaced: a reference to one is a snapshot. */
export interface StoredRecord {
  readonly id: string;
  readonly created_at: string;
}

/** A record's fixed place in every index; `value` is its newest state. */
export interface Row<T> {
  readonly id: string;
  readonly createdAtMs: number;
  value: T;
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
  readonly byCreation: SortedIndex<Row<T>>;
  /** The rows with one value of a grouped field, in order of creation. */
  group(field: string, value: string): SortedIndex<Row<T>> | undefined;
  keyOf(field: string): ((record: T) => string | null) | undefined;
  /** Rows in order of an indexed sort field; undefined when the field has no index. */
  sorted(field: string): SortedIndex<Row<T>> | undefined;
}

export interface TableOptions<T> {
  /** Fields that lists filter by: one index each. A null key is in no group. */
  groups?: Record<string, (record: T) => string | null>;
  /** Fields that lists sort by, beside the order of creation. */
  sorts?: Record<string, (record: T) => string>;
}

/** Order of creation; ids break ties, so that the order is total (statement 119). */
export function compareByCreation<T>(a: Row<T>, b: Row<T>): number {
  return a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

export function createTable<T extends StoredRecord>(options: TableOptions<T> = {}): Table<T> {
  const rows = new Map<string, Row<T>>();
  const byCreation = createSortedIndex<Row<T>>(compareByCreation);
  const groups = Object.entries(options.groups ?? {}).map(([field, keyOf]) => ({
    field,
    keyOf,
    indexes: new Map<string, SortedIndex<Row<T>>>(),
  }));
  const sorts = Object.entries(options.sorts ?? {}).map(([field, keyOf]) => ({
    field,
    keyOf,
    index: createSortedIndex<Row<T>>((a, b) => {
      const keyA = keyOf(a.value);
      const keyB = keyOf(b.value);
      return keyA < keyB ? -1 : keyA > keyB ? 1 : compareByCreation(a, b);
    }),
  }));

  function addToGroup(group: (typeof groups)[number], key: string | null, row: Row<T>): void {
    if (key === null) return;
    let index = group.indexes.get(key);
    if (index === undefined) {
      index = createSortedIndex<Row<T>>(compareByCreation);
      group.indexes.set(key, index);
    }
    insertSorted(index, row);
  }

  function removeFromGroup(group: (typeof groups)[number], key: string | null, row: Row<T>): void {
    if (key === null) return;
    const index = group.indexes.get(key);
    if (index !== undefined) removeSorted(index, row);
    if (index?.size === 0) group.indexes.delete(key);
  }

  function group(field: string, value: string): SortedIndex<Row<T>> | undefined {
    return groups.find((known) => known.field === field)?.indexes.get(value);
  }

  return {
    get size() {
      return rows.size;
    },
    get: (id) => rows.get(id)?.value,
    row: (id) => rows.get(id),
    insert(record) {
      const row = { id: record.id, createdAtMs: Date.parse(record.created_at), value: record };
      rows.set(record.id, row);
      insertSorted(byCreation, row);
      for (const group of groups) addToGroup(group, group.keyOf(record), row);
      for (const sort of sorts) insertSorted(sort.index, row);
    },
    replace(record) {
      const row = rows.get(record.id);
      if (row === undefined) throw new Error(`no record ${record.id} to replace`);
      const previous = row.value;
      const moved = sorts.filter((sort) => sort.keyOf(previous) !== sort.keyOf(record));
      for (const sort of moved) removeSorted(sort.index, row);
      row.value = record;
      for (const sort of moved) insertSorted(sort.index, row);
      for (const group of groups) {
        const before = group.keyOf(previous);
        const after = group.keyOf(record);
        if (before === after) continue;
        removeFromGroup(group, before, row);
        addToGroup(group, after, row);
      }
    },
    delete(id) {
      const row = rows.get(id);
      if (row === undefined) return;
      for (const sort of sorts) removeSorted(sort.index, row);
      for (const group of groups) removeFromGroup(group, group.keyOf(row.value), row);
      removeSorted(byCreation, row);
      rows.delete(id);
    },
    all: () => Array.from(ascending(byCreation), (row) => row.value),
    inGroup(field, value) {
      const index = group(field, value);
      return index === undefined ? [] : Array.from(ascending(index), (row) => row.value);
    },
    byCreation,
    group,
    keyOf: (field) => groups.find((group) => group.field === field)?.keyOf,
    sorted: (field) => sorts.find((sort) => sort.field === field)?.index,
  };
}
