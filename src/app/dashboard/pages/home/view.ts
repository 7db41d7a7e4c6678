import { type Html, html } from "../../../../platform/html.ts";
import { counted } from "../../../../platform/readable-text.ts";
import type { Lead, SummaryCard } from "../../page-group.ts";
import { ageHint } from "../../elements/slow-reads.ts";
import { type Tone, withWholeMoments } from "../../elements/values.ts";
import { type Beginning, isBegun, isNew, renderFirstSteps } from "./first-steps.ts";

/** A card and the age of its data; 0: just read. */
export type ShownCard = SummaryCard & { ageMs: number };

export interface HomePage {
  /** Null: it could not be read. Undefined: no part proves anything. */
  trust: Awaited<ReturnType<Lead["read"]>> | null | undefined;
  beginning: Beginning | null;
  cards: readonly ShownCard[];
  /** False: there are cards that this visitor may not see. */
  seesAll: boolean;
}

export function renderHome(home: HomePage): Html {
  const { trust, beginning, cards } = home;
  // A wall of zeros means nothing for a deployment without data.
  if (beginning !== null && isNew(beginning)) {
    return html`<p class="lead">
        Nothing has come in yet. This page will say how far the mirror is proved equal to the service, and what needs
        attention.
      </p>
      ${renderFirstSteps(beginning)}`;
  }
  return html`${trust === null ? unknownTrust : (trust?.body ?? false)}${renderVerdict(home)}
    ${beginning !== null && !isBegun(beginning) && renderFirstSteps(beginning)}
    <ul class="cards plain-list">
      ${cards.map(renderCard)}
    </ul>`;
}

const unreadTrust = {
  path: "/reconciliation",
  text: "It could not be read whether the mirror is proved.",
};

const unknownTrust: Html = html`<section class="trust bad" aria-labelledby="trust">
  <h2 id="trust">It is not known whether the mirror is proved</h2>
  <p>The state of the proof could not be read; the log of the dashboard says why.</p>
</section>`;

/** The worst first. */
const ranks: Readonly<Record<Tone, number>> = { bad: 0, warn: 1, calm: 2, good: 3 };

/** States that all is well only where everything could be read, is proved, and has no reason. */
function renderVerdict({ trust, beginning, cards, seesAll }: HomePage): Html {
  const events = (text: string) => ({ path: "/events", tone: "bad" as Tone, text });
  const named = [
    ...(beginning === null ? [events("It could not be read whether webhooks arrive.")] : []),
    ...(beginning?.hasEvents === false
      ? [events("No webhook has ever arrived: the service does not know where to send them.")]
      : []),
    ...(trust === null ? [unreadTrust] : (trust?.reasons ?? [])).map((each) => ({
      ...each,
      tone: trust?.tone ?? "bad",
    })),
    ...cards.flatMap(({ path, tone, reasons }) => reasons.map((text) => ({ path, tone, text }))),
  ].toSorted((one, other) => ranks[one.tone] - ranks[other.tone]);
  if (named.length === 0) {
    return html`<p class="notice">
      Nothing needs attention${seesAll ? "." : ", as far as your roles let you see. Others may have something to do."}
    </p>`;
  }
  return html`<section class="needs" aria-labelledby="needs">
    <h2 id="needs">${counted(named.length, "thing needs", "things need")} attention</h2>
    <ul>
      ${named.map(({ path, tone, text }) => html`<li class="${tone}"><a href="${path}">${withWholeMoments(text)}</a></li>`)}
    </ul>
  </section>`;
}

function renderCard({ title, path, tone, headline, facts, ageMs }: ShownCard): Html {
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
    ${ageHint(ageMs)}
  </li>`;
}
