import { html } from "../../../platform/html.ts";
import type { Html } from "../../../platform/html.ts";
import type { ColumnFigure, Figure } from "../../figures/figure.ts";
import { drawBars } from "./bars.ts";
import { drawColumns } from "./columns.ts";

/** Widths of a drawing in its own units: over the whole page, or two side by side. */
const wide = 980;
const narrow = 470;
/** This many columns still fit into half a page. */
const fewColumns = 6;

/** Fills that are told apart without colour; used by every drawing of the page. */
export const patterns = html`<svg class="patterns" aria-hidden="true" focusable="false">
  <defs>
    <pattern
      id="fill-loss"
      width="6"
      height="6"
      patternUnits="userSpaceOnUse"
      patternTransform="rotate(45)"
    >
      <rect class="loss-ground" width="6" height="6" />
      <rect class="loss-stripe" width="2" height="6" />
    </pattern>
    <pattern id="fill-other" width="5" height="5" patternUnits="userSpaceOnUse">
      <rect class="other-ground" width="5" height="5" />
      <circle class="other-dot" cx="2.5" cy="2.5" r="1" />
    </pattern>
  </defs>
</svg>`;

/** Drawings with their captions, each readable without being seen. Pure. */
export function renderFigures(figures: readonly Figure[]): Html | null {
  if (figures.length === 0) return null;
  return html`<section class="figures" aria-label="Charts">${figures.map(renderFigure)}</section>`;
}

function renderFigure(figure: Figure, n: number): Html {
  const isWide = figure.kind === "bars" ? false : figure.columns.length > fewColumns;
  const width = isWide ? wide : narrow;
  const { height, drawing } =
    figure.kind === "bars" ? drawBars(figure, width) : drawColumns(figure, width);
  const [title, description] = [`figure-${n}-title`, `figure-${n}-description`];
  return html`<figure class="${isWide ? "wide" : "narrow"}">
    <figcaption>${figure.title}</figcaption>
    ${figure.kind === "columns" && renderLegend(figure)}
    <svg viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="${title} ${description}">
      <title id="${title}">${figure.title}</title>
      <desc id="${description}">${figure.describes}</desc>
      ${drawing}
    </svg>
    <p class="describes">${figure.describes}</p>
  </figure>`;
}

function renderLegend({ legend, columns }: ColumnFigure): Html | null {
  const marks = new Map(
    columns.flatMap(({ mark }) => (mark === null ? [] : [[mark.sign, mark.meaning]])),
  );
  if (legend.length + marks.size === 0) return null;
  return html`<ul class="legend">
    ${legend.map(
      ({ tone, label }) =>
        html`<li>
          <svg viewBox="0 0 14 14" aria-hidden="true">
            <rect class="${tone}" width="14" height="14" rx="2" /></svg
          >${label}
        </li>`,
    )}${[...marks].map(([sign, meaning]) => html`<li><b class="mark">${sign}</b>${meaning}</li>`)}
  </ul>`;
}
