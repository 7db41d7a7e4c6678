import type { SortedIndex } from "./sorted-index.ts";

/** A record's fixed place in every index; `value` is its newest state. */
export interface Row<T> {
  readonly id: string;
  readonly createdAtMs: number;
  /** Among which rows it was created (`Spans`). */
  readonly span: number;
  /** The how-manieth of its table. */
  readonly number: number;
  value: T;
}

export type RowIndex<T> = SortedIndex<Row<T>>;

/** Order of creation, also of what was created within one millisecond: the order is total. */
export function compareByCreation<T>(a: Row<T>, b: Row<T>): number {
  return a.createdAtMs - b.createdAtMs || a.number - b.number;
}
