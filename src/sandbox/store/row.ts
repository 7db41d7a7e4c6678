import type { SortedIndex } from "./sorted-index.ts";

/** A record's fixed place in every index; `value` is its newest state. */
export interface Row<T> {
  readonly id: string;
  readonly createdAtMs: number;
  /** Among which rows it was created (`spans.ts`). */
  readonly span: number;
  value: T;
}

export type RowIndex<T> = SortedIndex<Row<T>>;

/** Order of creation; ids break ties, so that the order is total (statement 119). */
export function compareByCreation<T>(a: Row<T>, b: Row<T>): number {
  return a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}
