/**
 * The fields of every stored record. They bear the interface's names. Records are replaced and never changed in place,
 * so that a reference to one (in an event, in a stored answer) is a snapshot.
 */
export interface StoredRecord {
  readonly id: string;
  readonly created_at: string;
}

export type Metadata = Readonly<Record<string, unknown>>;

/** A record's fixed place in its table; `value` is its newest state. */
export interface Row<T> {
  readonly id: string;
  readonly createdAtMs: number;
  /** The row's position in order of insertion. */
  readonly number: number;
  value: T;
}

/** Order of creation. It is total: rows created within one millisecond have an order, too. */
export function compareByCreation<T>(a: Row<T>, b: Row<T>): number {
  return a.createdAtMs - b.createdAtMs || a.number - b.number;
}

type KeyOf<T, Key> = (record: T) => Key;

export interface Table<T extends StoredRecord> {
  readonly size: number;
  get(id: string): T | undefined;
  row(id: string): Row<T> | undefined;
  insert(record: T): void;
  /** Replaces the record with the same id and `created_at`. */
  replace(record: T): void;
  delete(id: string): void;
  /** All records, in order of creation. */
  all(): T[];
  /** The records with one value of a grouped field, in order of creation. */
  inGroup(field: string, value: string): T[];
  /** All rows, in order of creation. A live view of the table. */
  readonly byCreation: readonly Row<T>[];
  /** The rows with one value of a grouped field, in order of creation. A live view of the table. */
  group(field: string, value: string): readonly Row<T>[];
  groupKey(field: string): KeyOf<T, string | null>;
  /** Undefined when lists cannot be sorted by this field. */
  sortKey(field: string): KeyOf<T, string | number> | undefined;
}

export interface TableOptions<T> {
  /** Fields that lists filter by value. A record whose key is null is in no group. */
  groups?: Record<string, KeyOf<T, string | null>>;
  /** Fields that lists sort by, in addition to the order of creation. */
  sorts?: Record<string, KeyOf<T, string | number>>;
}

/** Records by id, in order of creation, and by the values of a few fields. */
export function createTable<T extends StoredRecord>({ groups = {}, sorts = {} }: TableOptions<T> = {}): Table<T> {
  const rows = new Map<string, Row<T>>();
  const byCreation: Row<T>[] = [];
  let inserted = 0;
  const grouped = Object.entries(groups).map(([field, keyOf]) => ({
    field,
    keyOf,
    values: new Map<string, Row<T>[]>(),
  }));
  const sortKeys = new Map(Object.entries(sorts));

  function groupOf(field: string) {
    const found = grouped.find((known) => known.field === field);
    if (found === undefined) throw new Error(`no group by ${field}`);
    return found;
  }

  return {
    get size() {
      return rows.size;
    },
    get: (id) => rows.get(id)?.value,
    row: (id) => rows.get(id),
    insert(record) {
      inserted += 1;
      const createdAtMs = Date.parse(record.created_at);
      const row = { id: record.id, createdAtMs, number: inserted, value: record };
      rows.set(record.id, row);
      addTo(byCreation, row);
      for (const { keyOf, values } of grouped) addToGroup(values, keyOf(record), row);
    },
    replace(record) {
      const row = rows.get(record.id);
      if (row === undefined) throw new Error(`no record ${record.id} to replace`);
      for (const { keyOf, values } of grouped) {
        const [before, after] = [keyOf(row.value), keyOf(record)];
        if (before === after) continue;
        removeFromGroup(values, before, row);
        addToGroup(values, after, row);
      }
      row.value = record;
    },
    delete(id) {
      const row = rows.get(id);
      if (row === undefined) return;
      rows.delete(id);
      removeFrom(byCreation, row);
      for (const { keyOf, values } of grouped) removeFromGroup(values, keyOf(row.value), row);
    },
    all: () => byCreation.map(({ value }) => value),
    inGroup: (field, value) => (groupOf(field).values.get(value) ?? []).map((row) => row.value),
    byCreation,
    group: (field, value) => groupOf(field).values.get(value) ?? [],
    groupKey: (field) => groupOf(field).keyOf,
    sortKey: (field) => sortKeys.get(field),
  };
}

/** The number of leading entries of a sorted array that are not yet `reached`. */
export function countBefore<R>(sorted: readonly R[], reached: (entry: R) => boolean): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (reached(sorted[middle] as R)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Adds at the end, unless the clock was set back. */
function addTo<T>(rows: Row<T>[], row: Row<T>): void {
  const newest = rows.at(-1);
  if (newest === undefined || compareByCreation(newest, row) < 0) rows.push(row);
  else rows.splice(placeOf(rows, row), 0, row);
}

function removeFrom<T>(rows: Row<T>[], row: Row<T>): void {
  rows.splice(placeOf(rows, row), 1);
}

function placeOf<T>(rows: readonly Row<T>[], row: Row<T>): number {
  return countBefore(rows, (other) => compareByCreation(other, row) >= 0);
}

function addToGroup<T>(values: Map<string, Row<T>[]>, key: string | null, row: Row<T>): void {
  if (key === null) return;
  const known = values.get(key);
  if (known === undefined) values.set(key, [row]);
  else addTo(known, row);
}

function removeFromGroup<T>(values: Map<string, Row<T>[]>, key: string | null, row: Row<T>): void {
  const known = key === null ? undefined : values.get(key);
  if (key === null || known === undefined) return;
  removeFrom(known, row);
  if (known.length === 0) values.delete(key);
}
