import {
  type Row,
  type RowIndex,
  type SortedIndex,
  compareByCreation,
  createSortedIndex,
  insertSorted,
  removeSorted,
} from "./sorted-index.ts";

/** The rows of a table by the value of one of their fields. */
export interface Group<T> {
  /** A null key is in no group. */
  readonly keyOf: (record: T) => string | null;
  /** Few values with many rows each: these have every sort of the table as well. */
  readonly isLarge: boolean;
  add(row: Row<T>): void;
  /** Asked before the row's value changes. */
  remove(row: Row<T>): void;
  /** In order of creation. */
  rows(value: string): RowIndex<T> | undefined;
  /** By the sort of that number, where the group is large. */
  sorted(value: string, sort: number): SpanOrder<T> | undefined;
}

export interface GroupOptions<T> extends Pick<Group<T>, "keyOf" | "isLarge"> {
  measures: RowIndex<T>["measures"];
  sorts: readonly SpanOrder<T>["compare"][];
}

export function createGroup<T>({ keyOf, isLarge, measures, sorts }: GroupOptions<T>): Group<T> {
  const values = new Map<string, FewRows<T>>();
  const orders = new Map<string, SpanOrder<T>[]>();

  const measured = isLarge ? measures : undefined;

  return {
    keyOf,
    isLarge,
    add(row) {
      const key = keyOf(row.value);
      if (key === null) return;
      values.set(key, withRow(values.get(key), row, measured));
      if (!isLarge) return;
      let sorted = orders.get(key);
      if (sorted === undefined) {
        sorted = sorts.map((compare) => createSpanOrder(compare, measures));
        orders.set(key, sorted);
      }
      for (const order of sorted) insertInOrder(order, row);
    },
    remove(row) {
      const key = keyOf(row.value);
      const known = key === null ? undefined : values.get(key);
      if (key === null || known === undefined) return;
      if (withoutRow(known, row) === undefined) values.delete(key);
      for (const order of orders.get(key) ?? []) removeFromOrder(order, row);
    },
    rows(value) {
      const known = values.get(value);
      return known === undefined ? undefined : asIndex(known, measured);
    },
    sorted: (value, sort) => orders.get(value)?.[sort],
  };
}

/** Rows in order of creation that are one more often than not, as those of a customer or of a rare word: one stands for itself. */
export type FewRows<T> = Row<T> | RowIndex<T>;

/** The rows and one more. An index is changed in its place. */
export function withRow<T>(
  rows: FewRows<T> | undefined,
  row: Row<T>,
  measures?: RowIndex<T>["measures"],
): FewRows<T> {
  if (rows === undefined) return row;
  const index = isIndex(rows) ? rows : asIndex(rows, measures);
  insertSorted(index, row);
  return index;
}

/** What is left without a row that is among them; undefined when nothing is. */
export function withoutRow<T>(rows: FewRows<T>, row: Row<T>): FewRows<T> | undefined {
  if (!isIndex(rows)) return undefined;
  removeSorted(rows, row);
  return rows.size === 0 ? undefined : rows;
}

function asIndex<T>(rows: FewRows<T>, measures?: RowIndex<T>["measures"]): RowIndex<T> {
  if (isIndex(rows)) return rows;
  const index = createSortedIndex(compareByCreation<T>, measures);
  insertSorted(index, rows);
  return index;
}

export function isIndex<T>(rows: FewRows<T>): rows is RowIndex<T> {
  return "chunks" in rows;
}

/** Rows in another order than that of creation: an index for each span that has some. */
export interface SpanOrder<T> {
  readonly compare: (a: Row<T>, b: Row<T>) => number;
  readonly measures: SortedIndex<Row<T>>["measures"];
  readonly spans: Map<number, RowIndex<T>>;
}

export function createSpanOrder<T>(
  compare: SpanOrder<T>["compare"],
  measures: SpanOrder<T>["measures"],
): SpanOrder<T> {
  return { compare, measures, spans: new Map() };
}

export function insertInOrder<T>({ compare, measures, spans }: SpanOrder<T>, row: Row<T>): void {
  let index = spans.get(row.span);
  if (index === undefined) {
    index = createSortedIndex(compare, measures);
    spans.set(row.span, index);
  }
  insertSorted(index, row);
}

export function removeFromOrder<T>({ spans }: SpanOrder<T>, row: Row<T>): void {
  const index = spans.get(row.span);
  if (index === undefined) return;
  removeSorted(index, row);
  if (index.size === 0) spans.delete(row.span);
}

/** The indexes of spans: together they hold every row there. */
export function indexesAt<T>(order: SpanOrder<T>, spans: readonly number[]): RowIndex<T>[] {
  return spans.flatMap((at) => order.spans.get(at) ?? []);
}

/** So many that the spans of a year are few, and so few that one is looked through in a millisecond. */
const usualRows = 16_384;

/**
 * Rows that were created one after the other share a span. Other orders than that of creation are kept for each span
 * (`SpanOrder`): a list of one month by time of change reads that month, and not whatever was changed since.
 */
export interface Spans {
  /** The span of a new row. */
  place(createdAtMs: number): number;
  /** Every span that can hold rows created within bounds, the second excluded. */
  covering(fromMs: number, beforeMs: number): number[];
}

interface Span {
  placed: number;
  fromMs: number;
  toMs: number;
}

export function createSpans(rowsPerSpan = usualRows): Spans {
  const spans: Span[] = [];
  return {
    place(createdAtMs) {
      let span = spans.at(-1);
      if (span === undefined || span.placed >= rowsPerSpan) {
        span = { placed: 0, fromMs: createdAtMs, toMs: createdAtMs };
        spans.push(span);
      }
      span.placed += 1;
      // A clock that was set back makes spans overlap, which costs time and nothing else.
      span.fromMs = Math.min(span.fromMs, createdAtMs);
      span.toMs = Math.max(span.toMs, createdAtMs);
      return spans.length - 1;
    },
    covering: (fromMs, beforeMs) =>
      spans.flatMap((span, at) => (span.toMs >= fromMs && span.fromMs < beforeMs ? [at] : [])),
  };
}
