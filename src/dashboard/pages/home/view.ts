import { type Html, html } from "../../../platform/html.ts";
import { counted } from "../../../platform/readable-text.ts";
import type { SummaryCard } from "../../page-group.ts";

/** Pure. */
export function renderHome({ cards }: { cards: readonly SummaryCard[] }): Html {
  return html`${renderVerdict(cards)}
    <ul class="cards plain-list">
      ${cards.map(renderCard)}
    </ul>`;
}

function renderVerdict(cards: readonly SummaryCard[]): Html {
  const named = cards.flatMap(({ path, reasons }) => reasons.map((text) => ({ path, text })));
  if (named.length === 0) return html`<p class="notice">Nothing needs you now.</p>`;
  return html`<section class="problem">
    <h2>${counted(named.length, "thing needs", "things need")} somebody</h2>
    <ul>
      ${named.map(({ path, text }) => html`<li><a href="${path}">${text}</a></li>`)}
    </ul>
  </section>`;
}

function renderCard({ title, path, tone, headline, facts }: SummaryCard): Html {
  return html`<li class="card summary ${tone}">
    <h2><a href="${path}">${title}</a></h2>
    <p class="stat">${headline}</p>
    ${
      facts.length > 0 &&
      html`<dl class="facts">
        ${facts.map(
          ({ name, value }) =>
            html`<dt>${name}</dt>
              <dd>${value}</dd>`,
        )}
      </dl>`
    }
  </li>`;
}
