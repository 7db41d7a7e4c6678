import type { Row, RowIndex } from "./row.ts";
import { compareByCreation } from "./row.ts";
import { createSortedIndex, insertSorted, removeSorted } from "./sorted-index.ts";

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

export function asIndex<T>(rows: FewRows<T>, measures?: RowIndex<T>["measures"]): RowIndex<T> {
  if (isIndex(rows)) return rows;
  const index = createSortedIndex(compareByCreation<T>, measures);
  insertSorted(index, rows);
  return index;
}

export function isIndex<T>(rows: FewRows<T>): rows is RowIndex<T> {
  return "chunks" in rows;
}
