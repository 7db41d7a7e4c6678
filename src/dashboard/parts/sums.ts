import { type Html, html } from "../../platform/html.ts";
import { money } from "./money.ts";

/** An amount in minor units; either may be missing. */
export interface Amount {
  totalMinor: bigint | null;
  currency: string | null;
}

/** What amounts come to, by currency; those without an amount count as nothing. Pure. */
function sumsOf(amounts: readonly Amount[]): [currency: string | null, sum: bigint][] {
  const sums = new Map<string | null, bigint>();
  for (const { totalMinor, currency } of amounts) {
    sums.set(currency, (sums.get(currency) ?? 0n) + (totalMinor ?? 0n));
  }
  return [...sums].sort(([a], [b]) => (a ?? "").localeCompare(b ?? ""));
}

/** One amount a currency; a dash where there is none. Pure. */
export function sums(amounts: readonly Amount[]): Html {
  const found = sumsOf(amounts);
  if (found.length === 0) return html`–`;
  return html`<ul class="sums plain-list">
    ${found.map(([currency, sum]) => html`<li>${money(sum, currency)}</li>`)}
  </ul>`;
}
