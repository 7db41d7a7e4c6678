import { aboutLines } from "../../about.ts";
import type { Column } from "../../report.ts";
import type { Rendering, RenderingInput } from "../rendering.ts";
import { createTotals } from "../totals.ts";
import { createRowWriter, textRow } from "./cells.ts";
import { stylesXml } from "./styles.ts";
import {
  contentTypesXml,
  packageRelationsXml,
  sheetEnd,
  sheetFile,
  sheetStart,
  workbookRelationsXml,
  workbookXml,
} from "./workbook-parts.ts";
import { createZipStream } from "./zip-stream.ts";

/** A sheet holds 1,048,576 rows; the header and the sums are among them. */
const mostRowsPerSheet = 1_000_000;
/** A spreadsheet takes no longer name. */
const nameLength = 31;

/**
 * The rows with typed cells, a frozen header and a sum for each currency, over as many sheets as they need, and a sheet "about".
 * Written as the rows come: memory stays flat.
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

  /** Where the next rows belong: in a new sheet when there is none yet, or it is full. */
  async function openRows(): Promise<void> {
    if (sheets.length > 0 && at <= rowsPerSheet) return;
    if (sheets.length === 0) await begin();
    const number = sheets.length === 0 ? "" : ` ${sheets.length + 1}`;
    await openSheet(
      report.name.slice(0, nameLength - number.length) + number,
      columns.map(widthOf),
      true,
    );
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
      for (const line of aboutLines(about)) await zip.append(textRow(line, ++at, [true, false]));
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
  Math.max(name.length + 2, kind === "time" ? 24 : kind === "text" ? 16 : 12);
