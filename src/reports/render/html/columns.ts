import { html } from "../../../platform/html.ts";
import type { Html } from "../../../platform/html.ts";
import type { Column, ColumnFigure } from "../../figures/figure.ts";
import { rounded, scaleFor } from "./scale.ts";
import type { Scale } from "./scale.ts";

const columnsHeight = 248;
const plot = { top: 22, left: 54, bottom: columnsHeight - 40 };
/** Room that a label below a column takes. */
const labelWidth = 76;

/** The inside of an `<svg>` and its size. Pure. */
export function drawColumns(
  { columns, axis, thresholds }: ColumnFigure,
  width: number,
): { height: number; drawing: Html } {
  const totals = columns.map(({ parts }) => parts.reduce((sum, { value }) => sum + value, 0));
  const scale = scaleFor([...totals, ...thresholds.map(({ value }) => value)]);
  const y = toHeight(scale);
  const each = (width - plot.left) / Math.max(columns.length, 1);
  const thick = rounded(Math.min(each * 0.72, 46));
  const everyNth = Math.ceil(labelWidth / each);
  const drawing = html`${scale.ticks.map(
    (tick) =>
      html`<line
          class="${tick === 0 ? "zero" : "grid"}"
          x1="${plot.left}"
          x2="${width}"
          y1="${y(tick)}"
          y2="${y(tick)}"
        /><text class="tick" x="${plot.left - 8}" y="${y(tick) + 4}" text-anchor="end"
          >${axis(tick)}</text
        >`,
  )}${columns.map((column, n) => {
    const middle = rounded(plot.left + each * (n + 0.5));
    return [
      drawColumn(column, { middle, thick, y }),
      n % everyNth === 0 && drawLabel(column, middle, width),
    ];
  })}${thresholds.map(
    ({ value, label }) =>
      html`<line
          class="threshold"
          x1="${plot.left}"
          x2="${width}"
          y1="${y(value)}"
          y2="${y(value)}"
        /><text class="threshold-label" x="${width}" y="${y(value) - 5}" text-anchor="end"
          >threshold ${label}</text
        >`,
  )}`;
  return { height: columnsHeight, drawing };
}

const toHeight =
  ({ min, max }: Scale) =>
  (value: number): number =>
    rounded(plot.bottom - ((value - min) / (max - min)) * (plot.bottom - plot.top));

function drawColumn(
  { parts, note, mark }: Column,
  { middle, thick, y }: { middle: number; thick: number; y: (value: number) => number },
): Html {
  const x = rounded(middle - thick / 2);
  let top = 0;
  const stacked = parts.map(({ value, tone }) => {
    const below = top;
    top += value;
    const tall = rounded(y(below) - y(top));
    return value === 0
      ? null
      : html`<rect class="${tone}" x="${x}" y="${y(top)}" width="${thick}" height="${tall}" />`;
  });
  return html`${stacked}${note !== null && html`<text class="value" x="${middle}" y="${y(top) - 6}" text-anchor="middle">${note}</text>`}${
    mark !== null &&
    html`<text class="mark" x="${middle}" y="${plot.bottom + 13}" text-anchor="middle"
      >${mark.sign}</text
    >`
  }`;
}

function drawLabel({ label }: Column, middle: number, width: number): Html {
  const isLast = middle + labelWidth / 2 > width;
  const [x, anchor] = isLast ? [width, "end"] : [middle, "middle"];
  return html`<text class="tick" x="${x}" y="${plot.bottom + 30}" text-anchor="${anchor}"
    >${label}</text
  >`;
}
