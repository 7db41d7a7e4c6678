import type { Bar, Figure } from "../../../app/figures/figure.ts";
import { type Exponents, amountText } from "./currencies.ts";

/** A row by column name. A closed month may have been frozen with other columns than those of today. */
export type RowByColumn = Readonly<Record<string, string | null>>;

/** Makes figures from all rows of a report. A figure never mixes currencies. */
export type MakeFigures = (rows: readonly RowByColumn[], exponents: Exponents) => Figure[];

/** Groups rows by their value in a column, in the order of the values. */
export function groupBy(rows: readonly RowByColumn[], column: string): [key: string, rows: RowByColumn[]][] {
  const groups = new Map<string, RowByColumn[]>();
  for (const row of rows) {
    const key = row[column] ?? "";
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [row]);
    else group.push(row);
  }
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** The exact sum of a column. A missing value counts as zero. */
export const sumOf = (rows: readonly RowByColumn[], column: string): bigint =>
  rows.reduce((sum, row) => sum + BigInt(row[column] ?? "0"), 0n);

/** A column that moves a balance: `1` adds to it, `-1` subtracts from it. */
export interface Step {
  column: string;
  label: string;
  sign: 1 | -1;
}

/** The columns with the opening and the closing balance. */
interface Ends {
  opening: string;
  closing: string;
}

/** Steps from the opening balance to the closing one, one figure for each currency. Rows must be in order of time. */
export const balanceSteps =
  (title: string, steps: readonly Step[], ends: Ends = { opening: "opening", closing: "closing" }): MakeFigures =>
  (rows, exponents) =>
    groupBy(rows, "currency").map(([currency, own]): Figure => {
      const print = (minor: bigint) => amountText(minor, currency, exponents);
      const opening = amountOf(own[0], ends.opening);
      const closing = amountOf(own.at(-1), ends.closing);
      let balance = opening;
      const moved = steps.map(({ column, label, sign }): Bar => {
        const change = BigInt(sign) * sumOf(own, column);
        const from = balance;
        balance += change;
        return {
          label,
          from: Number(from),
          to: Number(balance),
          value: `${change > 0n ? "+" : ""}${print(change)}`,
          tone: change < 0n ? "loss" : "gain",
        };
      });
      return {
        kind: "bars",
        title: `${title}, ${currency.toUpperCase()}`,
        describes: `From ${print(opening)} at the beginning to ${print(closing)} at the end, step by step.`,
        bars: [balanceBar("Opening", opening, print), ...moved, balanceBar("Closing", closing, print)],
      };
    });

const amountOf = (row: RowByColumn | undefined, column: string): bigint => BigInt(row?.[column] ?? "0");

const balanceBar = (label: string, balance: bigint, print: (minor: bigint) => string): Bar => ({
  label,
  from: 0,
  to: Number(balance),
  value: print(balance),
  tone: "base",
});
