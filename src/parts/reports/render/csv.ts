import { stringify } from "csv-stringify/sync";
import { withoutFormula } from "../../../platform/readable-text.ts";
import type { Cell, Column, ColumnKind } from "../base/report.ts";
import { type Rendering, type RenderingInput, readable } from "./rendering.ts";

/**
 * Puts a `'` before a text that a spreadsheet would run. Only text can be hostile: numbers and dates are our own, and a
 * number may begin with a minus sign.
 */
export const defuse = (cell: Cell, kind: ColumnKind): string => {
  if (cell === null) return "";
  return kind === "text" ? withoutFormula(cell) : cell;
};

/**
 * Renders column names and rows only, so that any ledger can import them. The command prints the facts separately. A
 * journal line has an amount on one side only, and the currency's ISO 4217 code.
 */
export function renderCsv({ report, columns, exponents, write }: RenderingInput): Rendering {
  const cellOf = (cell: Cell, { name, kind }: Column, minor: Cell): string => {
    if (report.takesAccounts !== true) return defuse(cell, kind);
    if (kind === "money" && minor === "0") return "";
    return defuse(name === "currency" ? (cell?.toUpperCase() ?? null) : cell, kind);
  };
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
          cellOf(cell, columns[n] ?? { name: "", kind: "text" }, row[n] ?? null),
        ),
      );
      await write(stringify(printed));
    },
    end: begin,
  };
}
