import { amountText } from "./amounts.ts";
import { groupBy, sumOf } from "./figure.ts";
import type { Bar, Cells, Figure, MakeFigures } from "./figure.ts";

/** A column that moves a balance: `1` adds to it, `-1` takes from it. */
export interface Step {
  column: string;
  label: string;
  sign: 1 | -1;
}

/** Where the balance at the beginning and at the end stands. */
interface Ends {
  opening: string;
  closing: string;
}

/** Steps from the opening balance to the closing one, a figure for each currency. Rows follow each other in time. */
export const balanceSteps =
  (
    title: string,
    steps: readonly Step[],
    ends: Ends = { opening: "opening", closing: "closing" },
  ): MakeFigures =>
  (rows, exponents) =>
    groupBy(rows, "currency").map(([currency, own]): Figure => {
      const print = (minor: bigint) => amountText(minor, currency, exponents);
      const [opening, closing] = [edge(own[0], ends.opening), edge(own.at(-1), ends.closing)];
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
        bars: [whole("Opening", opening, print), ...moved, whole("Closing", closing, print)],
      };
    });

const edge = (row: Cells | undefined, column: string): bigint => BigInt(row?.[column] ?? "0");

const whole = (label: string, balance: bigint, print: (minor: bigint) => string): Bar => ({
  label,
  from: 0,
  to: Number(balance),
  value: print(balance),
  tone: "base",
});
