import { Zip, ZipDeflate } from "fflate";
import { decimalText, minorDigits } from "../../../platform/money.ts";
import { withoutControls } from "../../../platform/readable-text.ts";
import { factLines } from "../base/report-facts.ts";
import type { Exponents } from "../base/currencies.ts";
import type { Cell, Column, Row } from "../base/report.ts";
import { type Rendering, type RenderingInput, type Write, createTotals } from "./rendering.ts";

/** A sheet holds 1,048,576 rows, including the header and the sums. */
const mostRowsPerSheet = 1_000_000;
/** The longest name that a sheet may have. */
const nameLength = 31;

/**
 * Renders the rows with typed cells, a frozen header and a sum for each currency, on as many sheets as they need, and a
 * sheet "about". It writes the rows as they come, so memory stays flat.
 */
export function renderXlsx(
  { report, columns, exponents, write }: RenderingInput,
  rowsPerSheet = mostRowsPerSheet,
): Rendering {
  const zip = createZipStream(write);
  const totals = createTotals(columns);
  const rowXml = createRowWriter(columns, exponents);
  const head = columns.map(({ name }) => name.replaceAll("_", " "));
  const sheets: string[] = [];
  let at = 0;

  async function openSheet(name: string, widths: readonly number[], isFrozen: boolean) {
    if (sheets.length > 0) await zip.append(sheetEnd);
    await zip.open(sheetFile(sheets.length));
    await zip.append(sheetStart(widths, isFrozen));
    sheets.push(name);
    at = 0;
  }

  /** Opens a new sheet if there is none yet or the current one is full. */
  async function openRows(): Promise<void> {
    if (sheets.length > 0 && at <= rowsPerSheet) return;
    if (sheets.length === 0) await begin();
    const number = sheets.length === 0 ? "" : ` ${sheets.length + 1}`;
    await openSheet(report.name.slice(0, nameLength - number.length) + number, columns.map(widthOf), true);
    await zip.append(
      textRow(
        head,
        ++at,
        head.map(() => true),
      ),
    );
  }

  async function begin(): Promise<void> {
    for (const [name, xml] of [
      ["[Content_Types].xml", contentTypesXml],
      ["_rels/.rels", packageRelationsXml],
      ["xl/styles.xml", stylesXml],
    ] as const) {
      await zip.open(name);
      await zip.append(xml);
    }
  }

  return {
    async rows(rows) {
      totals.add(rows);
      for (let from = 0; from < rows.length;) {
        await openRows();
        const fitting = rows.slice(from, from + rowsPerSheet + 1 - at);
        await zip.append(fitting.map((row) => rowXml(row, ++at)).join(""));
        from += fitting.length;
      }
    },
    async end(about) {
      await openRows();
      for (const { currency, cells } of totals.rows()) {
        await zip.append(rowXml(cells, ++at, currency === null ? "sum" : `sum ${currency}`));
      }
      await openSheet("about", [12, 110], false);
      for (const line of factLines(about)) await zip.append(textRow(line, ++at, [true, false]));
      await zip.append(sheetEnd);
      await zip.open("xl/workbook.xml");
      await zip.append(workbookXml(sheets));
      await zip.open("xl/_rels/workbook.xml.rels");
      await zip.append(workbookRelationsXml(sheets));
      await zip.end();
    },
  };
}

const widthOf = ({ name, kind }: Column): number =>
  Math.max(name.length + 2, kind === "time" ? 28 : kind === "text" ? 16 : 12);

/** A spreadsheet keeps this many digits. A longer number is written as text to stay exact. */
const exactDigits = 15;
/** Day 25,569 of a spreadsheet is 1970-01-01. */
const firstOf1970 = 25_569;
const dayMs = 86_400_000;

/** Makes `<row>` elements from a report's rows, each cell with its type. */
function createRowWriter(columns: readonly Column[], exponents: Exponents) {
  const letters = columns.map((_, n) => columnLetters(n));
  const currencyAt = columns.findIndex(({ name }) => name === "currency");
  /** `at`: the row's number in its sheet, from 1. `sumLabel`: the first cell of a row of sums, in bold. */
  return (row: Row, at: number, sumLabel?: string): string => {
    const digits = minorDigits(row[currencyAt] ?? null, exponents);
    const isBold = sumLabel !== undefined;
    const cells = row.map((cell, n) =>
      n === 0 && isBold
        ? textXml(sumLabel, `A${at}`, isBold)
        : cellXml(cell, columns[n]?.kind ?? "text", {
            ref: `${letters[n]}${at}`,
            digits,
            isBold,
          }),
    );
    return `<row r="${at}">${cells.join("")}</row>`;
  };
}

const textRow = (texts: readonly string[], at: number, isBold: readonly boolean[]): string =>
  `<row r="${at}">${texts.map((text, n) => textXml(text, `${columnLetters(n)}${at}`, isBold[n] ?? false)).join("")}</row>`;

interface CellPlace {
  ref: string;
  /** Decimals of the row's currency; null if they are not known. */
  digits: number | null;
  isBold: boolean;
}

function cellXml(cell: Cell, kind: Column["kind"], { ref, digits, isBold }: CellPlace): string {
  if (cell === null) return "";
  switch (kind) {
    case "text":
      return textXml(cell, ref, isBold);
    case "money":
      return digits === null
        ? numberXml(cell, "minorUnits", ref, isBold)
        : numberXml(decimalText(cell, digits), `money${digits}` as CellStyle, ref, isBold);
    case "count":
    case "number":
    case "percent":
      return numberXml(cell, kind, ref, isBold);
    case "day":
    case "month":
      return valueXml(Date.parse(`${cell}T00:00:00Z`) / dayMs + firstOf1970, kind, ref, isBold);
    case "time":
      return valueXml(Date.parse(cell) / dayMs + firstOf1970, kind, ref, isBold);
  }
}

function numberXml(number: string, style: CellStyle, ref: string, isBold: boolean): string {
  const isExact = number.replace(/\D/g, "").length <= exactDigits;
  return isExact ? valueXml(number, style, ref, isBold) : textXml(number, ref, isBold);
}

const valueXml = (value: string | number, style: CellStyle, ref: string, isBold: boolean): string =>
  `<c r="${ref}" s="${styleNumber(style, isBold)}"><v>${value}</v></c>`;

const textXml = (text: string, ref: string, isBold: boolean): string =>
  `<c r="${ref}" s="${styleNumber("text", isBold)}" t="inlineStr"><is><t xml:space="preserve">${escapeXml(withoutControls(text))}</t></is></c>`;

/**
 * Also escapes texts that look like a spreadsheet's escape (ECMA-376, 22.9.2.19), and replaces characters that XML does
 * not allow.
 */
const escapeXml = (text: string): string =>
  text
    .toWellFormed()
    .replace(/[\ufffe\uffff]/g, "\ufffd")
    .replace(/_(?=x[0-9A-Fa-f]{4}_)/g, "_x005F_")
    .replace(/&/g, "&amp;")
    .replace(/</g, "&lt;")
    .replace(/>/g, "&gt;");

/** `A`, `B`, … `Z`, `AA`. */
const columnLetters = (n: number): string =>
  (n >= 26 ? columnLetters(Math.floor(n / 26) - 1) : "") + String.fromCharCode(65 + (n % 26));

/** The format of a cell. `money0` to `money4` have that many decimals; other currencies are shown in minor units. */
export type CellStyle =
  | "text"
  | "count"
  | "number"
  | "percent"
  | "day"
  | "month"
  | "time"
  | "minorUnits"
  | `money${0 | 1 | 2 | 3 | 4}`;

/** Number formats of ECMA-376, 18.8.30. */
const numberFormats: Readonly<Record<CellStyle, string>> = {
  text: "General",
  count: "#,##0",
  number: "General",
  percent: "0.00",
  day: "yyyy-mm-dd",
  month: "yyyy-mm",
  // Without milliseconds, the last moment of a day would be rounded into the next day. The zone is in each cell, since
  // a day next to it is one of the report's zone. The quotes are escaped because this is part of an XML attribute.
  time: "yyyy-mm-dd hh:mm:ss.000&quot; UTC&quot;",
  minorUnits: "#,##0&quot; minor units&quot;",
  money0: "#,##0",
  money1: "#,##0.0",
  money2: "#,##0.00",
  money3: "#,##0.000",
  money4: "#,##0.0000",
};

const styleNames = Object.keys(numberFormats) as CellStyle[];
/** Lower ids are reserved for built-in formats. */
const firstId = 164;

/** The index of a style in `xl/styles.xml`: plain styles first, then the same in bold. */
const styleNumber = (style: CellStyle, isBold: boolean): number =>
  styleNames.indexOf(style) + (isBold ? styleNames.length : 0);

const stylesXml = ((): string => {
  const numbered = styleNames.map(
    (name, n) => `<numFmt numFmtId="${firstId + n}" formatCode="${numberFormats[name]}"/>`,
  );
  const cells = [0, 1].flatMap((font) =>
    styleNames.map(
      (_, n) =>
        `<xf numFmtId="${firstId + n}" fontId="${font}" fillId="0" borderId="0" xfId="0" applyNumberFormat="1" applyFont="1"/>`,
    ),
  );
  return `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><numFmts count="${numbered.length}">${numbered.join("")}</numFmts><fonts count="2"><font><sz val="11"/><name val="Calibri"/></font><font><b/><sz val="11"/><name val="Calibri"/></font></fonts><fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills><borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders><cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs><cellXfs count="${cells.length}">${cells.join("")}</cellXfs></styleSheet>`;
})();

const xmlHead = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n`;
const office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const packages = "http://schemas.openxmlformats.org/package/2006";
const spreadsheetMl = "application/vnd.openxmlformats-officedocument.spreadsheetml";
const sheetNamespace = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";

/**
 * Written first, before the number of sheets is known: every part that it does not name is a sheet (ECMA-376 part 2,
 * 7.2.3.2).
 */
const contentTypesXml = `${xmlHead}<Types xmlns="${packages}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="${spreadsheetMl}.worksheet+xml"/><Override PartName="/xl/workbook.xml" ContentType="${spreadsheetMl}.sheet.main+xml"/><Override PartName="/xl/styles.xml" ContentType="${spreadsheetMl}.styles+xml"/></Types>`;

const packageRelationsXml = `${xmlHead}<Relationships xmlns="${packages}/relationships"><Relationship Id="rId1" Type="${office}/officeDocument" Target="xl/workbook.xml"/></Relationships>`;

const sheetFile = (n: number): string => `xl/worksheets/sheet${n + 1}.xml`;

/** `xl/workbook.xml`. The sheet names are our own, report names with a number, and need no escaping. */
function workbookXml(sheets: readonly string[]): string {
  const listed = sheets.map((name, n) => `<sheet name="${name}" sheetId="${n + 1}" r:id="rId${n + 1}"/>`);
  return `${xmlHead}<workbook xmlns="${sheetNamespace}" xmlns:r="${office}"><sheets>${listed.join("")}</sheets></workbook>`;
}

function workbookRelationsXml(sheets: readonly string[]): string {
  const listed = sheets.map(
    (_, n) => `<Relationship Id="rId${n + 1}" Type="${office}/worksheet" Target="worksheets/sheet${n + 1}.xml"/>`,
  );
  return `${xmlHead}<Relationships xmlns="${packages}/relationships">${listed.join("")}<Relationship Id="rId${sheets.length + 1}" Type="${office}/styles" Target="styles.xml"/></Relationships>`;
}

/** The beginning of a sheet, up to its rows. With `isFrozen`, its first row stays visible. */
function sheetStart(widths: readonly number[], isFrozen: boolean): string {
  const pane = `<sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews>`;
  const columns = widths.map((width, n) => `<col min="${n + 1}" max="${n + 1}" width="${width}" customWidth="1"/>`);
  return `${xmlHead}<worksheet xmlns="${sheetNamespace}">${isFrozen ? pane : ""}<cols>${columns.join("")}</cols><sheetData>`;
}

const sheetEnd = `</sheetData></worksheet>`;

/** Writes the files of an archive one after the other. Compressed data is written immediately, so none piles up. */
export interface ZipStream {
  /** Completes the file before and begins a new one. */
  open(name: string): Promise<void>;
  append(text: string): Promise<void>;
  end(): Promise<void>;
}

/** The earliest time in the format. With a fixed time, the same content always gives the same bytes. */
const noTime = new Date(1980, 0, 1);
/** Costs two thirds of the default level 6; files are a few per cent larger. */
const compressionLevel = 3;

function createZipStream(write: Write): ZipStream {
  let ready: Uint8Array[] = [];
  let file: ZipDeflate | undefined;
  const zip = new Zip((error, chunk) => {
    if (error !== null) throw error;
    ready.push(chunk);
  });
  const encoder = new TextEncoder();
  const nothing = new Uint8Array(0);

  async function flush(): Promise<void> {
    const chunk = Buffer.concat(ready);
    ready = [];
    if (chunk.length > 0) await write(chunk);
  }

  return {
    async open(name) {
      file?.push(nothing, true);
      file = new ZipDeflate(name, { level: compressionLevel });
      file.mtime = noTime;
      zip.add(file);
      await flush();
    },
    async append(text) {
      file?.push(encoder.encode(text));
      await flush();
    },
    async end() {
      file?.push(nothing, true);
      zip.end();
      await flush();
    },
  };
}
