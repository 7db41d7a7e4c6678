import type { Row, RowIndex } from "./row.ts";
import type { SortedIndex } from "./sorted-index.ts";
import { createSortedIndex, insertSorted, removeSorted } from "./sorted-index.ts";

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
