import { withoutControls } from "../../../platform/readable-text.ts";
import { type Exponents, grouped } from "../base/currencies.ts";
import type { Figure } from "../../../app/figures/figure.ts";
import type { RowByColumn } from "../base/figure.ts";
import type { ReportFacts } from "../base/report-facts.ts";
import type { Column, Row } from "../base/report.ts";
import { type Rendering, type RenderingInput, createTotals, readable } from "./rendering.ts";

/** A report as shown on a page, independent of the page's layout. */
export interface ReportDocument {
  about: ReportFacts;
  columns: readonly Column[];
  exponents: Exponents;
  figures: readonly Figure[];
  /** The first rows; figures, sums and `about` cover all. */
  shown: readonly Row[];
  sums: readonly { currency: string | null; cells: Row }[];
}

/**
 * Gives the whole document to `take`. It keeps only the rows that are shown, but all rows of a report with charts: those
 * reports have few rows, because each row is a sum.
 */
export function collectDocument(
  { report, columns, exponents }: Omit<RenderingInput, "write">,
  { shownRows }: { shownRows: number },
  take: (document: ReportDocument) => Promise<void>,
): Rendering {
  const shown: Row[] = [];
  const charted: RowByColumn[] = [];
  const totals = createTotals(columns);
  return {
    rows(rows) {
      totals.add(rows);
      shown.push(...rows.slice(0, shownRows - shown.length));
      if (report.figures !== undefined) {
        for (const row of rows) {
          charted.push(Object.fromEntries(columns.map(({ name }, n) => [name, row[n] ?? null])));
        }
      }
      return Promise.resolve();
    },
    end: (about) => {
      const figures = report.figures?.(charted, exponents) ?? [];
      return take({ about, columns, exponents, figures, shown, sums: totals.rows() });
    },
  };
}

export function headText({ name, kind }: Column): string {
  const unit = kind === "time" ? " (UTC)" : kind === "percent" && !name.includes("percent") ? " %" : "";
  return `${name.replaceAll("_", " ")}${unit}`;
}

/** The cells of a row as people read them. */
export const cellTexts = (columns: readonly Column[], row: Row, exponents: Exponents): string[] =>
  readable(columns, row, exponents).map((cell, n) => (cell === null ? "" : print(cell, columns[n]?.kind ?? "text")));

function print(cell: string, kind: Column["kind"]): string {
  if (kind === "money" || kind === "count") return grouped(cell);
  return kind === "time" ? cell.slice(0, 19).replace("T", " ") : withoutControls(cell);
}

export const capital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

export const titleOf = (report: string): string =>
  report === "mrr" ? "Monthly recurring revenue" : capital(report.replaceAll("-", " "));
