import type { Row } from "./row.ts";

/** What a page is asked to hold. */
export interface PageQuery<T> {
  /** Grouped fields that must have one of these values. */
  anyOf?: Record<string, readonly string[]>;
  createdFromMs?: number;
  createdBeforeMs?: number;
  /** Amounts that must lie within bounds, both included. */
  within?: Record<string, Bounds>;
  /** The only records that can be meant, where they are few and known. */
  among?: readonly string[];
  /** Words that the table's text must hold, each at least as the beginning of one. */
  words?: readonly string[];
  /** What no index answers. */
  test?: (record: T) => boolean;
  /** `created_at`, or another sort field of the table. */
  sortField: string;
  descending: boolean;
  limit: number;
  /** The record after which (in list order), or before which, the page lies. */
  after?: Row<T>;
  before?: Row<T>;
}

interface Bounds {
  least: number;
  most: number;
}
