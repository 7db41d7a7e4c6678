import {
  type SpanOrder,
  type Spans,
  createGroup,
  createSpanOrder,
  createSpans,
  insertInOrder,
  removeFromOrder,
} from "./group.ts";
import {
  type Row,
  type RowIndex,
  ascending,
  compareByCreation,
  createSortedIndex,
  insertSorted,
  removeSorted,
} from "./sorted-index.ts";
import { type WordIndex, createWordIndex } from "./word-index.ts";

/**
 * What every stored record has. Fields bear the interface's names. Records are never changed, only replaced: whoever
 * holds one (an event, a stored answer) holds a snapshot.
 */
export interface StoredRecord {
  readonly id: string;
  readonly created_at: string;
}

export type Metadata = Readonly<Record<string, unknown>>;

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
  /** The rows with one value of a grouped field, in order of creation. */
  group(field: string, value: string): RowIndex<T> | undefined;
  /** The same by a sort field, where the group is large. */
  groupSorted(field: string, value: string, sort: string): SpanOrder<T> | undefined;
  keyOf(field: string): ((record: T) => string | null) | undefined;
  /** All rows by a sort field; undefined when lists cannot be sorted by it. */
  sorted(field: string): SpanOrder<T> | undefined;
  readonly spans: Pick<Spans, "covering">;
  /** Which rows hold a word, for a table whose text is searched. */
  readonly words: WordIndex<T> | undefined;
  /** Rows in order of an amount that lists filter by, with its place among the measures of zones. */
  amount(field: string): { index: RowIndex<T>; keyOf: (record: T) => number; zone: number };
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
  let inserted = 0;
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
  const spans = createSpans(options.rowsPerSpan);
  const sorts = Object.entries(options.sorts ?? {}).map(([field, keyOf]) => {
    const compare = comparingBy(keyOf);
    return { field, keyOf, compare, order: createSpanOrder(compare, measures) };
  });
  const groups = Object.entries(options.groups ?? {}).map(([field, keyOf]) => {
    const isLarge = options.large?.includes(field) ?? false;
    const compares = sorts.map(({ compare }) => compare);
    return { field, group: createGroup({ keyOf, isLarge, measures, sorts: compares }) };
  });
  const textOf = options.text;
  const words = textOf === undefined ? undefined : createWordIndex(textOf);

  function index(row: Row<T>): void {
    insertSorted(byCreation, row);
    for (const { group } of groups) group.add(row);
    for (const { order } of sorts) insertInOrder(order, row);
    for (const amount of amounts) insertSorted(amount.index, row);
    words?.add(row);
  }

  function unindex(row: Row<T>): void {
    removeSorted(byCreation, row);
    for (const { group } of groups) group.remove(row);
    for (const { order } of sorts) removeFromOrder(order, row);
    for (const amount of amounts) removeSorted(amount.index, row);
    words?.remove(row);
  }

  const groupOf = (field: string) => groups.find((known) => known.field === field)?.group;

  return {
    get size() {
      return rows.size;
    },
    get: (id) => rows.get(id)?.value,
    row: (id) => rows.get(id),
    insert(record) {
      const createdAtMs = Date.parse(record.created_at);
      const span = spans.place(createdAtMs);
      inserted += 1;
      const row = { id: record.id, createdAtMs, span, number: inserted, value: record };
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
      const moved = sorts.filter(({ keyOf }) => keyOf(previous) !== keyOf(record));
      const regrouped = groups.filter(
        ({ group: { keyOf, isLarge } }) =>
          keyOf(previous) !== keyOf(record) || (isLarge && moved.length > 0),
      );
      const isReworded = textOf !== undefined && textOf(previous) !== textOf(record);
      for (const { order } of moved) removeFromOrder(order, row);
      if (isReworded) words?.remove(row);
      for (const { group } of regrouped) group.remove(row);
      row.value = record;
      if (isReworded) words?.add(row);
      for (const { order } of moved) insertInOrder(order, row);
      for (const { group } of regrouped) group.add(row);
    },
    delete(id) {
      const row = rows.get(id);
      if (row === undefined) return;
      unindex(row);
      rows.delete(id);
    },
    all: () => Array.from(ascending(byCreation), (row) => row.value),
    inGroup(field, value) {
      const found = groupOf(field)?.rows(value);
      return found === undefined ? [] : Array.from(ascending(found), (row) => row.value);
    },
    byCreation,
    group: (field, value) => groupOf(field)?.rows(value),
    groupSorted(field, value, sort) {
      const at = sorts.findIndex((known) => known.field === sort);
      return groupOf(field)?.sorted(value, at);
    },
    keyOf: (field) => groupOf(field)?.keyOf,
    sorted: (field) => sorts.find((sort) => sort.field === field)?.order,
    spans,
    words,
    amount(field) {
      const at = amounts.findIndex((known) => known.field === field);
      const found = amounts[at];
      if (found === undefined) throw new Error(`no amount ${field}`);
      return { index: found.index, keyOf: found.keyOf, zone: creationZone + 1 + at };
    },
  };
}
