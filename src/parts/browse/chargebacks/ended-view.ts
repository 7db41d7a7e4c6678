import type { Chargeback } from "../../../core/mirror/chargebacks.ts";
import { tallyhook } from "../../../platform/command-line.ts";
import { type Html, html } from "../../../platform/html.ts";
import { counted } from "../../../platform/readable-text.ts";
import { money, outside, state, sums, time } from "../../../app/dashboard/elements/values.ts";
import { table } from "../../../app/dashboard/elements/table.ts";
import { amountOf, chargebackLink } from "./list-view.ts";

export interface EndedPage {
  ended: readonly Chargeback[];
  /** There may be more: only the last `lookThrough` were read. */
  isCut: boolean;
  lookThrough: number;
  timeZone: string;
}

/** Further ones are counted but not listed. */
const mostListed = 50;

export function renderEndedChargebacks(page: EndedPage): Html {
  const { ended, isCut, lookThrough, timeZone } = page;
  return html`<p><a href="/chargebacks">Chargebacks to answer</a></p>
    ${
      isCut &&
      html`<p class="hint">
        Only the ${lookThrough.toLocaleString("en-GB")} chargebacks that changed last are counted. The report has all:
        <code>${tallyhook("report chargebacks")}</code>
      </p>`
    }
    ${renderSums(ended)}
    ${
      ended.length > 0 &&
      table<Chargeback>(
        [
          { name: "Sale", cell: chargebackLink },
          {
            name: "Amount",
            kind: "number",
            cell: ({ amountMinor, currency }) => money(amountMinor, currency),
          },
          { name: "Card", cell: ({ cardBrand }) => outside(cardBrand ?? "unknown") },
          {
            name: "Outcome",
            cell: ({ state: end }) => (end === "dismissed" ? state("won", "good") : state("lost", "bad")),
          },
          {
            name: "Ended",
            cell: ({ resolvedAt }) => (resolvedAt === null ? "–" : time(resolvedAt, timeZone)),
          },
        ],
        ended.slice(0, mostListed),
        { caption: "Ended most recently", empty: html`None.` },
      )
    }`;
}

/** Summed by the card's network and currency: the service gives no reason. */
function renderSums(ended: readonly Chargeback[]): Html {
  const groups = new Map<string, Chargeback[]>();
  for (const each of ended) {
    const key = JSON.stringify([each.cardBrand ?? "unknown", each.currency]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [each]);
    else group.push(each);
  }
  const rows = [...groups.values()].sort((a, b) => b.length - a.length);
  const part = (these: readonly Chargeback[]): Html =>
    html`${these.length} <span class="hint">${sums(these.map(amountOf))}</span>`;
  return table<Chargeback[]>(
    [
      { name: "Network", cell: ([first]) => outside(first?.cardBrand ?? "unknown") },
      { name: "Currency", cell: ([first]) => first?.currency?.toUpperCase() ?? "unknown" },
      {
        name: "Won",
        kind: "number",
        cell: (these) => part(these.filter(({ state: end }) => end === "dismissed")),
      },
      {
        name: "Lost",
        kind: "number",
        cell: (these) => part(these.filter(({ state: end }) => end === "accepted")),
      },
      {
        name: "Share won",
        kind: "number",
        cell: (these) =>
          `${Math.round((100 * these.filter(({ state: end }) => end === "dismissed").length) / these.length)} %`,
      },
    ],
    rows,
    {
      caption: `Won and lost in the last twelve months: ${counted(ended.length, "chargeback")}`,
      empty: html`No chargeback ended in the last twelve months.`,
    },
  );
}
