import { html } from "../../../platform/html.ts";
import type { Html } from "../../../platform/html.ts";
import { visible } from "../../../platform/visible-text.ts";
import type { Exponents } from "../../currencies.ts";
import { grouped } from "../../figures/amounts.ts";
import type { Column, Row } from "../../report.ts";
import { readable } from "../totals.ts";
import type { Totals } from "../totals.ts";

export interface TableInput {
  columns: readonly Column[];
  exponents: Exponents;
  shown: readonly Row[];
  totals: Totals;
  /** Of all rows, shown or not. */
  rowCount: number;
}

/** The rows with their sums; the header is repeated on every printed page. Pure. */
export function renderRows({ columns, exponents, shown, totals, rowCount }: TableInput): Html {
  if (rowCount === 0) return html`<p class="none">There is nothing to show for this period.</p>`;
  const left = rowCount - shown.length;
  const sums = totals.rows();
  return html`<div class="rows" role="region" aria-label="Rows" tabindex="0">
    <table>
      <caption>
        Rows
      </caption>
      <thead>
        <tr>
          ${columns.map(renderHead)}
        </tr>
      </thead>
      <tbody>
        ${shown.map(
          (row) =>
            html`<tr>
              ${renderCells(columns, row, exponents)}
            </tr>`,
        )}
      </tbody>
      ${
        sums.length > 0 &&
        html`<tbody class="sums">
          ${sums.map(({ currency, cells }) => {
            const [, ...rest] = renderCells(columns, cells, exponents);
            return html`<tr>
              <th scope="row">Sum${currency !== null && ` ${currency}`}</th>
              ${rest}
            </tr>`;
          })}
        </tbody>`
      }
    </table>
    ${left > 0 && html`<p class="more">${grouped(String(left))} more rows are not shown; the sums are of all. --format csv has every row.</p>`}
  </div>`;
}

const renderHead = ({ name, kind }: Column): Html =>
  html`<th scope="col" class="${classOf(kind)}">
    ${name.replaceAll("_", " ")}${kind === "time" && " (UTC)"}${kind === "percent" && !name.includes("percent") && " %"}
  </th>`;

const renderCells = (columns: readonly Column[], row: Row, exponents: Exponents): Html[] =>
  readable(columns, row, exponents).map((cell, n) => {
    const { kind, name } = columns[n] ?? { kind: "text", name: "" };
    const isBad = name === "outcome" && (cell === "differs" || cell === "over");
    return html`<td class="${isBad ? "bad" : isId(cell) ? "id" : classOf(kind)}">
      ${cell === null ? "" : print(cell, kind)}
    </td>`;
  });

const isId = (cell: string | null): boolean => cell !== null && /^[0-9a-f-]{20,}$/.test(cell);

function print(cell: string, kind: Column["kind"]): string {
  if (kind === "money" || kind === "count") return grouped(cell);
  return kind === "time" ? cell.slice(0, 19).replace("T", " ") : visible(cell);
}

function classOf(kind: Column["kind"]): string {
  if (["money", "count", "number", "percent"].includes(kind)) return "number";
  return ["day", "month", "time"].includes(kind) ? "moment" : "text";
}
