import type { FewRows } from "./few-rows.ts";
import { asIndex, withoutRow, withRow } from "./few-rows.ts";
import type { Row, RowIndex } from "./row.ts";
import type { SpanOrder } from "./span-order.ts";
import { createSpanOrder, insertInOrder, removeFromOrder } from "./span-order.ts";

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
