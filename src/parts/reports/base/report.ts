import type { MakeFigures } from "./figure.ts";

/**
 * The kind of a cell. `money` is in minor units of the row's `currency`, `day` and `month` are in the report's time
 * zone, `time` is UTC.
 */
export type ColumnKind = "text" | "day" | "month" | "time" | "count" | "money" | "percent" | "number";

export interface Column {
  readonly name: string;
  readonly kind: ColumnKind;
  /** A sum is printed below the rows: for each currency (money) or over all rows (counts). */
  readonly isSummed?: true;
}

/** One report: the function of schema `reports` that computes it, and the display of its rows. */
export interface Report {
  readonly name: string;
  /** The question that it answers, in one line. */
  readonly explains: string;
  /** `reports.<source>(p_from, p_to, p_zone, p_as_of)`. */
  readonly source: string;
  /** The file that creates this function. */
  readonly sql: URL;
  readonly columns: readonly Column[];
  /** SQL. It must order the rows totally, so that a repeat gives the same bytes. */
  readonly orderBy: string;
  /** The report books to accounts: after `p_as_of` its function takes an account map and `p_final_until`. */
  readonly takesAccounts?: true;
  /** The report applies the card networks' thresholds: the last parameter of its function is the acquirer's region. */
  readonly takesRegion?: true;
  /** Rows may identify persons, for example by the text of a note: on the dashboard the report takes `month:read`. */
  readonly hasPersonalData?: true;
  /**
   * `reports.<source>_unknown(p_from, p_to, p_zone, p_as_of)` counts unknown values, as `what` and `n`
   * (unknown-values.ts). Else the rows that lack a summed amount, or a currency, are counted.
   */
  readonly tellsUnknown?: true;
  /** The rows take part in the verdict: a row with this `outcome` makes it FAIL. */
  readonly failsOn?: string;
  /** Charts above the rows, in formats that can draw them. */
  readonly figures?: MakeFigures;
}

/** A value of a row as text, in the form that is hashed; null where there is none. */
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
