import { renderHtml } from "./html.ts";
import { type Rendering, type RenderingInput, createTotals, readable } from "./rendering.ts";
import type { Cell, Column, ColumnKind, Report, Row } from "../base/report.ts";
import { renderBeancount, renderLedger } from "./text-ledger.ts";
import { renderXlsx } from "./xlsx.ts";
import { stringify } from "csv-stringify/sync";
import { counted, withoutControls, withoutFormula } from "../../../platform/readable-text.ts";
import { cellsText } from "../../../app/cli/table.ts";
import { factLines } from "../base/report-facts.ts";

const everyReports = ["table", "csv", "xlsx", "json", "html"] as const;
/** For programs of plain-text accounting. */
const journals = ["ledger", "beancount"] as const;
export const formats = [...everyReports, ...journals] as const;
export type Format = (typeof formats)[number];

/** The formats that a report can be written in. */
export const formatsOf = ({ takesAccounts }: Pick<Report, "takesAccounts">): readonly Format[] =>
  takesAccounts === true ? formats : everyReports;

const renderers: Readonly<Record<Format, (input: RenderingInput) => Rendering>> = {
  table: renderTable,
  csv: renderCsv,
  xlsx: (input) => renderXlsx(input),
  json: renderJson,
  html: renderHtml,
  ledger: renderLedger,
  beancount: renderBeancount,
};

export const createRendering = (format: Format, input: RenderingInput): Rendering => renderers[format](input);

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
function renderCsv({ report, columns, exponents, write }: RenderingInput): Rendering {
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

/**
 * Renders one object: `columns`, `rows` (one a line) and `about`. Money is minor units as text, since most readers lose
 * digits of JSON numbers above 2^53. Counts are numbers.
 */
function renderJson({ columns, write }: RenderingInput): Rendering {
  let before = `{"columns":${JSON.stringify(columns.map(({ name, kind }) => ({ name, kind })))},"rows":[`;
  return {
    async rows(rows) {
      const lines = rows.map((row) => JSON.stringify(toObject(columns, row))).join(",\n");
      await write(`${before}\n${lines}`);
      before = ",";
    },
    async end(about) {
      const start = before === "," ? "" : before;
      await write(`${start}\n],"about":${JSON.stringify(about)}}\n`);
    },
  };
}

function toObject(columns: readonly Column[], row: Row): Record<string, unknown> {
  return Object.fromEntries(columns.map(({ name, kind }, n) => [name, toJson(row[n] ?? null, kind)]));
}

const toJson = (cell: Cell, kind: Column["kind"]): string | number | null =>
  cell !== null && (kind === "count" || kind === "percent" || kind === "number") ? Number(cell) : cell;

/** More than a person reads. The sums, the hash and the number of rows cover all rows. */
const shownRows = 500;

/** Renders for a terminal: the facts about the report, its first rows, and the sums of all rows. */
function renderTable({ columns, exponents, write, width = Infinity }: RenderingInput): Rendering {
  const shown: Row[] = [];
  const totals = createTotals(columns);
  return {
    async rows(rows) {
      totals.add(rows);
      shown.push(...rows.slice(0, shownRows - shown.length));
    },
    async end(about) {
      const facts = factLines(about).map(([label, value]) => `${label.padEnd(10)} ${withoutControls(value)}\n`);
      const print = (row: Row) => readable(columns, row, exponents).map((cell: Cell) => cell ?? "");
      const sums = totals.rows().map(({ cells }) => {
        const [, ...rest] = print(cells);
        return [columns[0]?.name === "currency" ? `sum ${cells[0] ?? ""}` : "sum", ...rest];
      });
      const head = columns.map(({ name }) => name.replaceAll("_", " "));
      const numeric = columns.map(({ kind }) => ["money", "count", "percent", "number"].includes(kind));
      const table = cellsText({ head, rows: [...shown.map(print), ...sums], numeric }, width);
      const left = about.rows - shown.length;
      const more =
        left > 0 ? `${counted(left, "more row is", "more rows are")} not shown: --format csv has every row.\n` : "";
      await write(`${facts.join("")}${table}${more}`);
    },
  };
}
