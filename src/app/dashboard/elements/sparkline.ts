import { type Html, html } from "../../../platform/html.ts";

const width = 240;
const height = 36;

/** A row of columns without axes, oldest first, for the size of a few words. `label`: what it shows, in words. */
export function sparkline(values: readonly number[], label: string): Html {
  const most = Math.max(1, ...values);
  const each = width / Math.max(1, values.length);
  return html`<svg
    class="sparkline"
    preserveAspectRatio="none"
    viewBox="0 0 ${width} ${height}"
    role="img"
    aria-label="${label}"
  >
    ${values.map((value, n) => {
      const tall = value === 0 ? 1 : Math.max(2, Math.round((value / most) * height));
      return html`<rect
        class="${value === 0 ? "none" : "some"}"
        x="${(n * each + 1).toFixed(1)}"
        y="${height - tall}"
        width="${(each - 2).toFixed(1)}"
        height="${tall}"
      />`;
    })}
  </svg>`;
}
