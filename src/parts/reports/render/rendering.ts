import { amountWithoutCode } from "../../../platform/money.ts";
import type { ReportFacts } from "../base/report-facts.ts";
import type { Exponents } from "../base/currencies.ts";
import type { Cell, Column, Report, Row } from "../base/report.ts";

/** Takes the output of a rendering. Resolves when it can take more. */
export type Write = (chunk: string | Uint8Array) => Promise<void>;

export interface RenderingInput {
  report: Pick<Report, "name" | "explains" | "figures" | "takesAccounts">;
  columns: readonly Column[];
  exponents: Exponents;
  write: Write;
  /** The places of a line that is printed; absent: a table is as wide as its content. */
  width?: number | undefined;
}

/** Takes the rows as they come, then the facts about them: one pass over any number of rows. */
export interface Rendering {
  rows(rows: readonly Row[]): Promise<void>;
  end(about: ReportFacts): Promise<void>;
}

export interface Totals {
  add(rows: readonly Row[]): void;
  /** One row for each currency, in order; one row if the report has none. Cells of columns not summed are null. */
  rows(): { currency: string | null; cells: Row }[];
}

/** Sums the summable columns exactly, for each currency separately: currencies are never added together. */
export function createTotals(columns: readonly Column[]): Totals {
  const currencyAt = columns.findIndex(({ name }) => name === "currency");
  const sums = new Map<string | null, (bigint | null)[]>();
  const isSummed = columns.map((column) => column.isSummed === true);
  return {
    add(rows) {
      if (!isSummed.includes(true)) return;
      for (const row of rows) {
        const currency = currencyAt < 0 ? null : (row[currencyAt] ?? null);
        const known = sums.get(currency) ?? isSummed.map((summed) => (summed ? 0n : null));
        sums.set(
          currency,
          known.map((sum, n) => (sum === null ? null : sum + BigInt(row[n] ?? "0"))),
        );
      }
    },
    rows: () =>
      [...sums.entries()]
        .sort(([a], [b]) => ((a ?? "") < (b ?? "") ? -1 : 1))
        .map(([currency, cells]) => ({
          currency,
          cells: cells.map((sum, n) => (n === currencyAt ? currency : (sum?.toString() ?? null))),
        })),
  };
}

/**
 * Cells for people: money as a decimal number of the row's currency, or marked as minor units if the decimals are not
 * known; the rest unchanged.
 */
export function readable(columns: readonly Column[], row: Row, exponents: Exponents): Cell[] {
  const currency = row[columns.findIndex(({ name }) => name === "currency")] ?? null;
  return row.map((cell, n) => {
    if (cell === null) return null;
    const kind = columns[n]?.kind;
    if (kind === "money") return amountWithoutCode(cell, currency, exponents);
    return kind === "month" ? cell.slice(0, 7) : cell;
  });
}
