import Table from "cli-table3";
import { counted, withoutControls } from "../../../platform/readable-text.ts";
import { factLines } from "../base/report-facts.ts";
import type { Cell, Row } from "../base/report.ts";
import { type Rendering, type RenderingInput, createTotals, readable } from "./rendering.ts";

/** More than a person reads. The sums, the hash and the number of rows cover all rows. */
const shownRows = 500;

/** Renders for a terminal: the facts about the report, its first rows, and the sums of all rows. */
export function renderTable({ columns, exponents, write }: RenderingInput): Rendering {
  const shown: Row[] = [];
  const totals = createTotals(columns);
  return {
    async rows(rows) {
      totals.add(rows);
      shown.push(...rows.slice(0, shownRows - shown.length));
    },
    async end(about) {
      const width = 10;
      const head = factLines(about).map(([label, value]) => `${label.padEnd(width)} ${withoutControls(value)}\n`);
      const table = new Table({
        head: columns.map(({ name }) => name.replaceAll("_", " ")),
        colAligns: columns.map(({ kind }) =>
          ["money", "count", "percent", "number"].includes(kind) ? "right" : "left",
        ),
        style: { head: [], border: [], compact: true },
      });
      const print = (row: Row) => readable(columns, row, exponents).map((cell: Cell) => withoutControls(cell ?? ""));
      for (const row of shown) table.push(print(row));
      for (const { cells } of totals.rows()) {
        const [, ...rest] = print(cells);
        table.push([columns[0]?.name === "currency" ? `sum ${cells[0] ?? ""}` : "sum", ...rest]);
      }
      const left = about.rows - shown.length;
      const more =
        left > 0 ? `${counted(left, "more row is", "more rows are")} not shown: --format csv has every row.\n` : "";
      await write(`${head.join("")}${table.toString()}\n${more}`);
    },
  };
}
