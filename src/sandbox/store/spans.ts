import { createSortedIndex, insertSorted, removeSorted } from "./sorted-index.ts";
import type { SortedIndex } from "./sorted-index.ts";
import type { Row, RowIndex } from "./row.ts";

/** So many that a year of a shop has few spans, and so few that one is looked through in a millisecond. */
const usualRows = 4096;

type Compare<T> = (a: Row<T>, b: Row<T>) => number;

/**
 * Rows in other orders than that of creation, in spans of rows that were created one after the other. A list of one month by time of
 * change reads the spans of that month: in one index of all rows it would have to pass whatever was changed since.
 */
export interface Spans<T> {
  /** The span of a new row. */
  place(createdAtMs: number): number;
  insert(row: Row<T>, sort: number): void;
  remove(row: Row<T>, sort: number): void;
  /** The indexes of a sort that can hold rows created within bounds, the second excluded. */
  within(sort: number, fromMs: number, beforeMs: number): RowIndex<T>[];
}

interface Span<T> {
  placed: number;
  fromMs: number;
  toMs: number;
  /** One a sort. */
  readonly indexes: readonly RowIndex<T>[];
}

export function createSpans<T>(
  compares: readonly Compare<T>[],
  measures: SortedIndex<Row<T>>["measures"],
  rowsPerSpan = usualRows,
): Spans<T> {
  const spans: Span<T>[] = [];

  function indexOf(row: Row<T>, sort: number): RowIndex<T> {
    const index = spans[row.span]?.indexes[sort];
    if (index === undefined) throw new Error(`no span ${row.span} for row ${row.id}`);
    return index;
  }

  return {
    place(createdAtMs) {
      let span = spans.at(-1);
      if (span === undefined || span.placed >= rowsPerSpan) {
        const indexes = compares.map((compare) => createSortedIndex(compare, measures));
        span = { placed: 0, fromMs: createdAtMs, toMs: createdAtMs, indexes };
        spans.push(span);
      }
      span.placed += 1;
      // A clock that was set back makes spans overlap, which costs time and nothing else.
      span.fromMs = Math.min(span.fromMs, createdAtMs);
      span.toMs = Math.max(span.toMs, createdAtMs);
      return spans.length - 1;
    },
    insert: (row, sort) => insertSorted(indexOf(row, sort), row),
    remove: (row, sort) => {
      removeSorted(indexOf(row, sort), row);
    },
    within: (sort, fromMs, beforeMs) =>
      spans
        .filter((span) => span.toMs >= fromMs && span.fromMs < beforeMs)
        .flatMap(({ indexes }) => indexes[sort] ?? []),
  };
}
