import { html } from "../../../platform/html.ts";
import type { Html } from "../../../platform/html.ts";
import type { Bar, BarFigure } from "../../figures/figure.ts";
import { rounded } from "./scale.ts";

const rowHeight = 27;
const barHeight = 15;
/** About what a character takes, in units of the drawing. */
const characterWidth = 6;

/** The inside of an `<svg>` and its size. Pure. */
export function drawBars({ bars }: BarFigure, width: number): { height: number; drawing: Html } {
  const ends = bars.flatMap(({ from, to }) => [from, to]);
  const [min, max] = [Math.min(0, ...ends), Math.max(0, ...ends)];
  const labels = roomFor(bars.map(({ label }) => label));
  const room = width - labels - roomFor(bars.map(({ value }) => value));
  const x = (value: number) =>
    rounded(labels + (max === min ? 0 : ((value - min) / (max - min)) * room));
  const height = bars.length * rowHeight + 6;
  const drawing = html`<line
      class="zero"
      x1="${x(0)}"
      x2="${x(0)}"
      y1="0"
      y2="${height}"
    />${bars.map((each, n) => [
      drawBar(each, n * rowHeight + 6, { x, labels, width }),
      n > 0 ? drawStep(each, bars[n - 1] as Bar, n * rowHeight + 6, x) : null,
    ])}`;
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
    ><rect
      class="${tone}"
      x="${start}"
      y="${y}"
      width="${long}"
      height="${barHeight}"
      rx="1.5"
    /><text class="value" x="${width}" y="${y + 12}" text-anchor="end">${value}</text>`;
}

const roomFor = (texts: readonly string[]): number =>
  Math.ceil(texts.reduce((most, text) => Math.max(most, text.length), 0) * characterWidth) + 18;

/** Where a bar goes on from the end of the one above it, a hair joins them. */
function drawStep(
  { from, to }: Bar,
  above: Bar,
  y: number,
  x: (value: number) => number,
): Html | null {
  const joint = [above.to, above.from].find((end) => end !== 0 && (end === from || end === to));
  if (joint === undefined) return null;
  return html`<line
    class="joint"
    x1="${x(joint)}"
    x2="${x(joint)}"
    y1="${y - (rowHeight - barHeight)}"
    y2="${y}"
  />`;
}
