import { type Exponents, amountText } from "./currencies.ts";

/** A row by its columns' names. A closed month may have been frozen with other columns than there are today. */
export type Cells = Readonly<Record<string, string | null>>;

/** How a value is told apart besides its place; each has a colour and a pattern of its own. */
export type Tone = "base" | "gain" | "loss" | "other";

/** Bars along a common axis, one below the other: shares of a whole, or the steps from one balance to the next. */
export interface BarFigure {
  kind: "bars";
  title: string;
  /** What it shows, in a sentence, for who cannot see it. */
  describes: string;
  bars: readonly Bar[];
}

export interface Bar {
  label: string;
  /** Where it begins and ends on the axis. */
  from: number;
  to: number;
  /** Exact, as it is printed beside the bar. */
  value: string;
  tone: Tone;
}

/** Columns side by side, as days or months follow each other. */
export interface ColumnFigure {
  kind: "columns";
  title: string;
  describes: string;
  /** Ticks of the axis are printed by this. */
  axis: (value: number) => string;
  columns: readonly Column[];
  /** Lines across all columns. */
  thresholds: readonly { value: number; label: string }[];
  /** What each tone stands for; empty where there is one. */
  legend: readonly { tone: Tone; label: string }[];
}

export interface Column {
  label: string;
  /** Stacked from the bottom. */
  parts: readonly { value: number; tone: Tone }[];
  /** Printed above it. */
  note: string | null;
  /** Below it: something to look at. */
  mark: { sign: string; meaning: string } | null;
}

export type Figure = BarFigure | ColumnFigure;

/** Makes figures of all rows of a report. Pure. No figure ever has two currencies. */
export type MakeFigures = (rows: readonly Cells[], exponents: Exponents) => Figure[];

/** Rows that share a value, in the order of the values. */
export function groupBy(rows: readonly Cells[], column: string): [key: string, rows: Cells[]][] {
  const groups = new Map<string, Cells[]>();
  for (const row of rows) {
    const key = row[column] ?? "";
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [row]);
    else group.push(row);
  }
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** The exact sum of a column; what is not there counts nothing. */
export const sumOf = (rows: readonly Cells[], column: string): bigint =>
  rows.reduce((sum, row) => sum + BigInt(row[column] ?? "0"), 0n);

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
