import { setTimeout as sleep } from "node:timers/promises";
import { tallyhook } from "../../../../platform/command-line.ts";
import type { Lead, PageGroup, Summary, SummaryCard } from "../../page-group.ts";
import type { PageDeps, Route, Visitor } from "../../route.ts";
import { type SlowReads, ageHint, createSlowReads } from "../../elements/slow-reads.ts";
import type { Answers } from "../../../answers.ts";
import { type Beginning, isBegun, isNew, readBeginning, renderFirstSteps } from "./first-steps.ts";
import { type Html, html } from "../../../../platform/html.ts";
import { counted } from "../../../../platform/readable-text.ts";
import { type Tone, withWholeMoments } from "../../elements/values.ts";

/** How far the mirror is proved, and everything that needs attention. */
export function homePages(groups: readonly PageGroup[], ask: Pick<Answers, "beginning">): PageGroup {
  return { place: { path: "/", name: "Home", access: "status:read" }, routes: [homeRoute(groups, ask)] };
}

function homeRoute(groups: readonly PageGroup[], ask: Pick<Answers, "beginning">): Route {
  const lead = groups.find((group) => group.lead !== undefined)?.lead;
  const cardsRead = createSlowReads<Summary, SummaryCard>();
  return {
    method: "GET",
    path: "/",
    access: "status:read",
    async answer(deps, { visitor }) {
      const [trust, beginning, ...cards] = await Promise.all([
        lead === undefined ? undefined : orUnknown(deps, "trust", () => lead.read(deps)),
        orUnknown<Beginning>(deps, "first steps", () => readBeginning(deps.db, ask)),
        ...groups.map((group) => cardOf(group, deps, { visitor, cardsRead })),
      ]);
      const shown = cards.filter((card) => card !== null);
      return {
        kind: "page",
        title: "Home",
        body: renderHome({
          trust,
          beginning,
          cards: shown,
          seesAll: groups.every(({ summary }) => summary === undefined || visitor.permissions.has(summary.access)),
        }),
        command: tallyhook("doctor"),
      };
    },
  };
}

/** Home waits so long for a card, and shows the others without it. */
const patienceMs = 2_500;

/** Null where the group has no card for this visitor. */
async function cardOf(
  { place, summary }: PageGroup,
  deps: PageDeps,
  { visitor, cardsRead }: { visitor: Visitor; cardsRead: SlowReads<Summary, SummaryCard> },
): Promise<ShownCard | null> {
  if (summary === undefined || !visitor.permissions.has(summary.access)) return null;
  const title = place?.name ?? "Unknown";
  const found = await orUnknown(deps, title, () => cardsRead(deps, summary, () => summary.read(deps)));
  if (found !== null) return { ...found.value, ageMs: found.ageMs };
  return {
    title,
    path: place?.path ?? "/",
    tone: "warn",
    headline: "Unknown",
    facts: [],
    reasons: [`${title}: this could not be read; the log of the dashboard says why.`],
    ageMs: 0,
  };
}

/** Null where it cannot be read in time; the reason is in the log. */
async function orUnknown<T>({ log }: PageDeps, part: string, read: () => Promise<T>): Promise<T | null> {
  const answered = new AbortController();
  try {
    return await Promise.race([
      read(),
      sleep(patienceMs, undefined, { signal: answered.signal }).then(() => {
        throw new Error(`it took longer than ${patienceMs} ms`);
      }),
    ]);
  } catch (err) {
    log.warn({ err, part }, "a part of home could not be read");
    return null;
  } finally {
    answered.abort();
  }
}

/** A card and the age of its data; 0: just read. */
type ShownCard = SummaryCard & { ageMs: number };

interface HomePage {
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
