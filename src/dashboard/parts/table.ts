import { type Html, type HtmlPart, html } from "../../platform/html.ts";

export interface TableColumn<Row> {
  name: string;
  cell(row: Row): HtmlPart;
  /** Numbers and money stand at the right; a moment stays on one line, and a long text keeps its width. */
  kind?: "number" | "id" | "moment" | "long";
}

export interface TableOptions {
  caption: string;
  /** What to say, and what to do, where there is no row. */
  empty: Html;
  /** Below the rows, a list of cells each; the first cell says what it is. */
  sums?: readonly (readonly HtmlPart[])[];
}

/** A table that scrolls in its own frame where the window is narrow. Pure. */
export function table<Row>(
  columns: readonly TableColumn<Row>[],
  rows: readonly Row[],
  { caption, empty, sums = [] }: TableOptions,
): Html {
  if (rows.length === 0) return html`<div class="empty">${empty}</div>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${caption}">
    <table>
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
              ${columns.map(({ cell, kind }) => html`<td class="${kind ?? "text"}">${cell(row)}</td>`)}
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
                ${rest.map((cell, n) => html`<td class="${columns[n + 1]?.kind ?? "text"}">${cell}</td>`)}
              </tr>`,
          )}
        </tfoot>`
      }
    </table>
  </div>`;
}
