import writeExcelFile from "write-excel-file/node";
import type { CellObject } from "write-excel-file/node";
import { UsageError } from "../../platform/errors.ts";
import { aboutLines } from "../about.ts";
import { exponentOf, formatMinor } from "../currencies.ts";
import type { Exponents } from "../currencies.ts";
import type { Cell, Column, Row } from "../report.ts";
import type { Rendering, RenderingInput } from "./rendering.ts";
import { createTotals } from "./totals.ts";
import { visible } from "./visible.ts";
import { withoutZipTimes } from "./zip-times.ts";

/** A workbook is made in memory; this many rows take less than the 250 MB that a report may. */
const maxRows = 30_000;

/** Two sheets: the rows with typed cells, a frozen header and a sum for each currency, and "about". */
export function renderXlsx({ report, columns, exponents, write }: RenderingInput): Rendering {
  const rows: CellObject[][] = [];
  const totals = createTotals(columns);
  return {
    async rows(more) {
      if (rows.length + more.length > maxRows) {
        throw new UsageError(
          `The report has more than ${maxRows} rows, too many for a workbook. Use --format csv, or a shorter period.`,
        );
      }
      totals.add(more);
      for (const row of more) rows.push(cellsOf(columns, row, exponents));
    },
    async end(about) {
      const head = columns.map(({ name }) => ({
        value: name.replaceAll("_", " "),
        fontWeight: "bold" as const,
      }));
      const sums = totals.rows().map(({ currency, cells }) => {
        const [, ...rest] = cellsOf(columns, cells, exponents);
        const label = { value: currency === null ? "sum" : `sum ${currency}`, type: String };
        return [label, ...rest].map((cell) => ({ ...cell, fontWeight: "bold" as const }));
      });
      const aboutRows = aboutLines(about).map(([label, value]) => [
        { value: label, fontWeight: "bold" as const },
        { value: visible(value), type: String },
      ]);
      const workbook = await writeExcelFile([
        {
          sheet: report.name.slice(0, 31),
          data: [head, ...rows, ...sums],
          columns: columns.map(({ name, kind }) => ({ width: widthOf(name, kind) })),
          stickyRowsCount: 1,
        },
        { sheet: "about", data: aboutRows, columns: [{ width: 12 }, { width: 110 }] },
      ]).toBuffer();
      await write(withoutZipTimes(workbook));
    },
  };
}

const widthOf = (name: string, kind: Column["kind"]): number =>
  Math.max(name.length + 2, kind === "time" ? 20 : kind === "text" ? 16 : 12);

const cellsOf = (columns: readonly Column[], row: Row, exponents: Exponents): CellObject[] => {
  const currency = row[columns.findIndex(({ name }) => name === "currency")] ?? null;
  const exponent = exponentOf(exponents, currency);
  return row.map((cell, n) => cellOf(cell, columns[n]?.kind ?? "text", exponent));
};

function cellOf(cell: Cell, kind: Column["kind"], exponent: number): CellObject {
  if (cell === null) return {};
  switch (kind) {
    case "money": {
      const format = exponent === 0 ? "#,##0" : `#,##0.${"0".repeat(exponent)}`;
      return numberCell(formatMinor(cell, exponent), format);
    }
    case "count":
      return numberCell(cell, "#,##0");
    case "number":
      return numberCell(cell, "0.##");
    case "percent":
      return numberCell(cell, "0.00");
    case "day":
      return { value: new Date(`${cell}T00:00:00Z`), type: Date, format: "yyyy-mm-dd" };
    case "month":
      return { value: new Date(`${cell}T00:00:00Z`), type: Date, format: "yyyy-mm" };
    case "time":
      return { value: new Date(cell), type: Date, format: "yyyy-mm-dd hh:mm:ss" };
    case "text":
      return { value: visible(cell), type: String };
  }
}

/** A spreadsheet keeps 15 digits: what is longer stays exact as text. */
const numberCell = (text: string, format: string): CellObject =>
  text.replace(/\D/g, "").length > 15
    ? { value: text, type: String }
    : { value: Number(text), type: Number, format };
