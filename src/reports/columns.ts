import type { Column, ColumnKind } from "./report.ts";

const of =
  (kind: ColumnKind) =>
  (...names: string[]): Column[] =>
    names.map((name) => ({ name, kind }));

const summed =
  (kind: ColumnKind) =>
  (...names: string[]): Column[] =>
    names.map((name) => ({ name, kind, isSummed: true }));

export const text = of("text");
export const day = of("day");
export const month = of("month");
export const time = of("time");
export const count = of("count");
export const number = of("number");
export const percent = of("percent");
/** Minor units that must not be added over rows: balances, running sums. */
export const money = of("money");
export const summedMoney = summed("money");
export const summedCount = summed("count");
