import { stringify } from "csv-stringify/sync";
import type { Cell, ColumnKind } from "../base/report.ts";
import { type Rendering, type RenderingInput, readable } from "./rendering.ts";

/** A spreadsheet takes a text that begins so for a formula and runs it. */
const startsFormula = /^[=+\-@\t\r\n]/;

/** Only text can be hostile: numbers and dates are ours, and a minus sign belongs to a number. Pure. */
export const defuse = (cell: Cell, kind: ColumnKind): string => {
  if (cell === null) return "";
  return kind === "text" && startsFormula.test(cell) ? `'${cell}` : cell;
};

/** Column names and rows, nothing else, so that every ledger can import it. What it is stands beside it (cli). */
export function renderCsv({ columns, exponents, write }: RenderingInput): Rendering {
  const head = stringify([columns.map(({ name }) => name)]);
  let written = false;
  const begin = async () => {
    if (!written) await write(head);
    written = true;
  };
  return {
    async rows(rows) {
      await begin();
      const printed = rows.map((row) =>
        readable(columns, row, exponents).map((cell, n) =>
          defuse(cell, columns[n]?.kind ?? "text"),
        ),
      );
      await write(stringify(printed));
    },
    end: begin,
  };
}
