import { type Html, html } from "../../platform/html.ts";
import type { Bar, BarFigure, Column, ColumnFigure, Figure } from "./figure.ts";

/** Widths of a drawing in its own units: across the whole page, or half of it. */
const wide = 980;
const narrow = 470;
/** Up to this many columns fit into half a page. */
const fewColumns = 6;

/** Fills that can be distinguished without colour, shared by all drawings of the page. */
export const patterns = html`<svg class="patterns" aria-hidden="true" focusable="false">
  <defs>
    <pattern id="fill-loss" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
      <rect class="loss-ground" width="6" height="6" />
      <rect class="loss-stripe" width="2" height="6" />
    </pattern>
    <pattern id="fill-other" width="5" height="5" patternUnits="userSpaceOnUse">
      <rect class="other-ground" width="5" height="5" />
      <circle class="other-dot" cx="2.5" cy="2.5" r="1" />
    </pattern>
  </defs>
</svg>`;

/**
 * Renders drawings with captions, each with a description for screen readers. `name` begins their ids, and tells the
 * charts of a page apart.
 */
export function renderFigures(figures: readonly Figure[], name = "figure"): Html | null {
  if (figures.length === 0) return null;
  const label = name === "figure" ? "Charts" : `Charts: ${name}`;
  return html`<section class="figures" aria-label="${label}">
    ${figures.map((figure, n) => renderFigure(figure, `${name}-${n}`))}
  </section>`;
}

function renderFigure(figure: Figure, id: string): Html {
  const isHalf = figure.kind === "columns" && figure.isHalf === true;
  const isWide = figure.kind === "columns" && !isHalf && figure.columns.length > fewColumns;
  const width = isWide ? wide : narrow;
  const { height, drawing } = figure.kind === "bars" ? drawBars(figure, width) : drawColumns(figure, width);
  const [title, description] = [`${id}-title`, `${id}-description`];
  return html`<figure class="${isWide ? "wide" : isHalf ? "narrow half" : "narrow"}">
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
  const marks = new Map(columns.flatMap(({ mark }) => (mark === null ? [] : [[mark.sign, mark.meaning]])));
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

const rowHeight = 27;
const barHeight = 15;
/** The approximate width of a character, in units of the drawing. */
const characterWidth = 6;

/** The inside of an `<svg>` and its size. */
function drawBars({ bars, threshold }: BarFigure, width: number): { height: number; drawing: Html } {
  const ends = [...bars.flatMap(({ from, to }) => [from, to]), threshold?.value ?? 0];
  const [min, max] = [Math.min(0, ...ends), Math.max(0, ...ends)];
  const labels = roomFor(bars.map(({ label }) => label));
  const room = width - labels - roomFor(bars.map(({ value }) => value));
  const x = (value: number) => rounded(labels + (max === min ? 0 : ((value - min) / (max - min)) * room));
  const end = bars.length * rowHeight + 6;
  const height = threshold === undefined ? end : end + 16;
  const drawing = html`<line class="zero" x1="${x(0)}" x2="${x(0)}" y1="0" y2="${end}" />${bars.map((each, n) => [
      drawBar(each, n * rowHeight + 6, { x, labels, width }),
      n > 0 ? drawStep(each, bars[n - 1] as Bar, n * rowHeight + 6, x) : null,
    ])}${
      threshold !== undefined &&
      html`<line class="threshold" x1="${x(threshold.value)}" x2="${x(threshold.value)}" y1="0" y2="${end}" /><text
          class="threshold-label"
          x="${x(threshold.value)}"
          y="${height - 4}"
          text-anchor="middle"
          >${threshold.label}</text
        >`
    }`;
  return { height, drawing };
}

function drawBar(
  { label, from, to, value, tone }: Bar,
  y: number,
  { x, labels, width }: { x: (value: number) => number; labels: number; width: number },
): Html {
  const [start, end] = [Math.min(x(from), x(to)), Math.max(x(from), x(to))];
  const long = rounded(Math.max(end - start, from === to ? 0 : 1.5));
  return html`<text class="label" x="${labels - 10}" y="${y + 12}" text-anchor="end">${label}</text
    ><rect class="${tone}" x="${start}" y="${y}" width="${long}" height="${barHeight}" rx="1.5" /><text
      class="value"
      x="${width}"
      y="${y + 12}"
      text-anchor="end"
      >${value}</text
    >`;
}

const roomFor = (texts: readonly string[]): number =>
  Math.ceil(texts.reduce((most, text) => Math.max(most, text.length), 0) * characterWidth) + 18;

/** A thin line that joins a bar to the one above it, if it begins where that one ends. */
function drawStep({ from, to }: Bar, above: Bar, y: number, x: (value: number) => number): Html | null {
  const joint = [above.to, above.from].find((end) => end !== 0 && (end === from || end === to));
  if (joint === undefined) return null;
  return html`<line class="joint" x1="${x(joint)}" x2="${x(joint)}" y1="${y - (rowHeight - barHeight)}" y2="${y}" />`;
}

const columnsHeight = 248;
const plot = { top: 22, left: 54, bottom: columnsHeight - 40 };
/** The width of a label below a column. */
const labelWidth = 76;

/** The inside of an `<svg>` and its size. */
function drawColumns({ columns, axis, thresholds }: ColumnFigure, width: number): { height: number; drawing: Html } {
  const totals = columns.map(({ parts }) => parts.reduce((sum, { value }) => sum + value, 0));
  const scale = scaleFor([...totals, ...thresholds.map(({ value }) => value)]);
  const y = toHeight(scale);
  const each = (width - plot.left) / Math.max(columns.length, 1);
  // Without a gap where columns are too thin for one.
  const thick = rounded(Math.min(each < 4 ? each : each * 0.72, 46));
  const everyNth = columns.some(({ label }) => label === null) ? 1 : Math.ceil(labelWidth / each);
  const drawing = html`${scale.ticks.map(
    (tick) =>
      html`<line
          class="${tick === 0 ? "zero" : "grid"}"
          x1="${plot.left}"
          x2="${width}"
          y1="${y(tick)}"
          y2="${y(tick)}"
        /><text class="tick" x="${plot.left - 8}" y="${y(tick) + 4}" text-anchor="end">${axis(tick)}</text>`,
  )}${columns.map((column, n) => {
    const middle = rounded(plot.left + each * (n + 0.5));
    return [drawColumn(column, { middle, thick, y }), n % everyNth === 0 && drawLabel(column, middle, width)];
  })}${thresholds.map(
    ({ value, label }) =>
      html`<line class="threshold" x1="${plot.left}" x2="${width}" y1="${y(value)}" y2="${y(value)}" /><text
          class="threshold-label"
          x="${width}"
          y="${y(value) - 5}"
          text-anchor="end"
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
    return value === 0 ? null : html`<rect class="${tone}" x="${x}" y="${y(top)}" width="${thick}" height="${tall}" />`;
  });
  return html`${stacked}${note !== null && html`<text class="value" x="${middle}" y="${y(top) - 6}" text-anchor="middle">${note}</text>`}${
    mark !== null &&
    html`<text class="mark" x="${middle}" y="${plot.bottom + 13}" text-anchor="middle">${mark.sign}</text>`
  }`;
}

function drawLabel({ label }: Column, middle: number, width: number): Html | null {
  if (label === null) return null;
  const isLast = middle + labelWidth / 2 > width;
  const [x, anchor] = isLast ? [width, "end"] : [middle, "middle"];
  return html`<text class="tick" x="${x}" y="${plot.bottom + 30}" text-anchor="${anchor}">${label}</text>`;
}

/** A linear axis that includes zero and has round numbers at its ends. */
export interface Scale {
  min: number;
  max: number;
  ticks: readonly number[];
}

/** About `wanted` ticks at 1, 2, 2.5 or 5 times a power of ten, which span all values and zero. */
export function scaleFor(values: readonly number[], wanted = 4): Scale {
  const low = values.reduce((least, value) => Math.min(least, value), 0);
  const high = values.reduce((most, value) => Math.max(most, value), 0);
  if (low === high) return { min: 0, max: 1, ticks: [0] };
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 2.5, 5].find((factor) => factor * power >= rough) ?? 10) * power;
  const [first, last] = [Math.floor(low / step), Math.ceil(high / step)];
  const ticks = Array.from({ length: last - first + 1 }, (_, n) => (first + n) * step);
  return { min: first * step, max: last * step, ticks };
}

/** Rounds a coordinate to hundredths, which is finer than any screen. */
const rounded = (coordinate: number): number => Math.round(coordinate * 100) / 100;
