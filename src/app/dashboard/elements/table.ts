import { type Html, type HtmlPart, html } from "../../../platform/html.ts";

export interface TableColumn<Row> {
  name: string;
  cell(row: Row): HtmlPart;
  /** Numbers and money are right-aligned; a moment stays on one line, and a long text keeps its width. */
  kind?: "number" | "id" | "moment" | "long";
}

export interface TableOptions {
  caption: string;
  /** The text, with advice, for an empty table. */
  empty: Html;
  /** It stays a table on a phone, where values are compared side by side; other tables show a row as lines of text. */
  staysTable?: boolean;
  /** Below the rows, a list of cells each; the first cell is the label. */
  sums?: readonly (readonly HtmlPart[])[];
}

/**
 * A table. Where the window is narrow it scrolls in its own frame, or on a phone puts the column's name next to each
 * cell.
 */
export function table<Row>(
  columns: readonly TableColumn<Row>[],
  rows: readonly Row[],
  { caption, empty, staysTable = false, sums = [] }: TableOptions,
): Html {
  if (rows.length === 0) return html`<div class="empty">${empty}</div>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${caption}">
    <table class="${staysTable ? "columns" : "rows"}">
      <caption>
        ${caption}
      </caption>
      <thead>
        <tr>
          ${columns.map(({ name, kind }) => html`<th scope="col" class="${kind ?? "text"}">${name}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) =>
            html`<tr>
              ${columns.map(({ name, cell, kind }) => html`<td class="${kind ?? "text"}" data-name="${name}">${cell(row)}</td>`)}
            </tr>`,
        )}
      </tbody>
      ${
        sums.length > 0 &&
        html`<tfoot>
          ${sums.map(
            ([first = "", ...rest]) =>
              html`<tr>
                <th scope="row">${first}</th>
                ${rest.map((cell, n) => html`<td class="${columns[n + 1]?.kind ?? "text"}" data-name="${columns[n + 1]?.name ?? null}">${cell}</td>`)}
              </tr>`,
          )}
        </tfoot>`
      }
    </table>
  </div>`;
}
