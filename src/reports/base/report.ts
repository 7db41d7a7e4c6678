import type { MakeFigures } from "./figure.ts";

/**
 * What a cell holds. `money`: minor units of the row's `currency`; `day` and `month`: of the report's time zone;
 * `time`: UTC.
 */
export type ColumnKind =
  "text" | "day" | "month" | "time" | "count" | "money" | "percent" | "number";

export interface Column {
  readonly name: string;
  readonly kind: ColumnKind;
  /** Printed as a sum for each currency below the rows (money) or for all of them (counts). */
  readonly isSummed?: true;
}

/** One report: which function of schema `reports` answers it, and how its rows are shown. */
export interface Report {
  readonly name: string;
  /** What it answers, in one line. */
  readonly explains: string;
  /** `reports.<source>(p_from, p_to, p_zone, p_as_of)`. */
  readonly source: string;
  /** The file that makes this function. */
  readonly sql: URL;
  readonly columns: readonly Column[];
  /** SQL: makes the order of the rows total, so that a repeat gives the same bytes. */
  readonly orderBy: string;
  /** It books to accounts: the function takes an account map as its last parameter. */
  readonly takesAccounts?: true;
  /** It holds figures against what card networks tolerate: the function takes the acquirer's region as its last parameter. */
  readonly takesRegion?: true;
  /** Parts of the verdict are in the rows: any of these in `outcome` is a FAIL. */
  readonly failsOn?: string;
  /** Charts that stand above the rows where they can be drawn. */
  readonly figures?: MakeFigures;
}

/** A value of a row as text, in the form that the hash is made of; null where there is none. */
export type Cell = string | null;
export type Row = readonly Cell[];

export const hasCurrency = ({ columns }: Pick<Report, "columns">): boolean =>
  columns.some(({ name }) => name === "currency");

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
