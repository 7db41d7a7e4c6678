import { type Html, html } from "../../../platform/html.ts";
import { counted } from "../../../platform/readable-text.ts";
import { money } from "./values.ts";

/** An amount in minor units; either may be missing. */
export interface Amount {
  totalMinor: bigint | null;
  currency: string | null;
}

/** The totals of the known amounts, by currency. */
function sumsOf(amounts: readonly Amount[]): [currency: string | null, sum: bigint][] {
  const sums = new Map<string | null, bigint>();
  for (const { totalMinor, currency } of amounts) {
    if (totalMinor !== null) sums.set(currency, (sums.get(currency) ?? 0n) + totalMinor);
  }
  return [...sums].sort(([a], [b]) => (a ?? "").localeCompare(b ?? ""));
}

/** One amount a currency, and the number of unknown amounts; a dash where there are none. */
export function sums(amounts: readonly Amount[]): Html {
  if (amounts.length === 0) return html`–`;
  const unknown = amounts.filter(({ totalMinor }) => totalMinor === null).length;
  return html`<ul class="sums plain-list">
    ${sumsOf(amounts).map(([currency, sum]) => html`<li>${money(sum, currency)}</li>`)}${
      unknown > 0 && html`<li>${counted(unknown, "unknown amount")}</li>`
    }
  </ul>`;
}
