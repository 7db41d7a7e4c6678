import { setTimeout as sleep } from "node:timers/promises";
import { tallyhook } from "../../../../platform/command-line.ts";
import {
  type CardLine,
  type Lead,
  type PageGroup,
  type Reason,
  type Summary,
  type SummaryCard,
  tiles,
} from "../../page-group.ts";
import type { PageDeps, Route, Visitor } from "../../route.ts";
import { type SlowReads, ageHint, createSlowReads } from "../../elements/slow-reads.ts";
import type { Answers } from "../../../answers.ts";
import { type Beginning, isBegun, isNew, readBeginning, renderFirstSteps } from "./first-steps.ts";
import { type Html, html } from "../../../../platform/html.ts";
import { counted } from "../../../../platform/readable-text.ts";
import { type Tone, withWholeMoments } from "../../elements/values.ts";

/** How far the mirror is proved, and everything that needs attention. */
export function homePages(groups: readonly PageGroup[], ask: Pick<Answers, "beginning">): PageGroup {
  return { place: { path: "/", name: "Home", access: "status:read", area: null }, routes: [homeRoute(groups, ask)] };
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
    reasons: [
      {
        text: `${title}: this could not be read; the log of the dashboard says why.`,
        path: place?.path ?? "/",
        next: "Try the page",
      },
    ],
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
  return html`${renderVerdict(home)} ${trust === null ? unknownTrust : (trust?.body ?? false)}
    ${beginning !== null && !isBegun(beginning) && renderFirstSteps(beginning)}
    <div class="tiles">${tiles.map((tile) => renderTile(tile, cards, trust?.also))}</div>
    <ul class="lines plain-list">
      ${cards.filter(({ tile }) => tile === undefined).map((card) => html`<li>${renderLine(card)}</li>`)}
    </ul>`;
}

const unreadTrust: Reason = {
  path: "/reconciliation",
  next: "Try the page",
  text: "It could not be read whether the mirror is proved.",
};

const unknownTrust: Html = html`<section class="trust bad" aria-labelledby="trust">
  <h2 id="trust">It is not known whether the mirror is proved</h2>
  <p>The state of the proof could not be read; the log of the dashboard says why.</p>
</section>`;

/** The worst first. */
const ranks: Readonly<Record<Tone, number>> = { bad: 0, warn: 1, calm: 2, good: 3 };

/** So many matters are shown; what follows is only a warning, and opens with a press. */
const shownAtFirst = 6;

/** States that all is well only where everything could be read, is proved, and has no reason. */
function renderVerdict({ trust, beginning, cards, seesAll }: HomePage): Html {
  const arrivals = (text: string) => ({ text, tone: "bad" as Tone, path: "/endpoint", next: "See the endpoint" });
  const named = [
    ...(beginning === null ? [arrivals("It could not be read whether webhooks arrive.")] : []),
    ...(beginning?.hasEvents === false
      ? [arrivals("No webhook has ever arrived: the service does not know where to send them.")]
      : []),
    ...cards.flatMap(({ tone, reasons }) => reasons.map((each) => ({ ...each, tone }))),
    ...(trust === null ? [unreadTrust] : (trust?.reasons ?? [])).map((each) => ({
      ...each,
      tone: trust?.tone ?? "bad",
    })),
  ].toSorted((one, other) => ranks[one.tone] - ranks[other.tone]);
  if (named.length === 0) {
    return html`<p class="notice">
      Nothing needs attention${seesAll ? "." : ", as far as your roles let you see. Others may have something to do."}
    </p>`;
  }
  const bad = named.filter(({ tone }) => tone === "bad").length;
  const first = named.slice(0, Math.max(shownAtFirst, bad));
  const rest = named.slice(first.length);
  return html`<section class="needs ${named[0]?.tone ?? "warn"}" aria-labelledby="needs">
    <h2 id="needs">${counted(named.length, "thing needs", "things need")} attention</h2>
    <ul class="plain-list">
      ${first.map(renderMatter)}
    </ul>
    ${
      rest.length > 0 &&
      html`<details>
        <summary>${counted(rest.length, "more warning")}</summary>
        <ul class="plain-list">
          ${rest.map(renderMatter)}
        </ul>
      </details>`
    }
  </section>`;
}

const renderMatter = ({ path, tone, text, next }: Reason & { tone: Tone }): Html =>
  html`<li class="${tone}"><span>${withWholeMoments(text)}</span> <a href="${path}">${next}</a></li>`;

/** One of the three that answer a person at a glance: its first words, and a line for each group in it. */
function renderTile(
  tile: (typeof tiles)[number],
  cards: readonly ShownCard[],
  proof: SummaryCard["also"],
): Html | null {
  const own = cards.filter((card) => card.tile === tile);
  const lines: readonly (CardLine & { ageMs: number })[] = [
    ...own,
    ...cards.flatMap(({ also, ageMs }) => (also?.tile === tile ? [{ ...also, ageMs }] : [])),
    ...(proof?.tile === tile ? [{ ...proof, ageMs: 0 }] : []),
  ];
  if (lines.length === 0) return null;
  const top = own.find((card) => card.top !== undefined)?.top;
  const figure = own.find((card) => card.figure !== undefined)?.figure;
  return html`<section class="card tile" aria-labelledby="tile-${tile}">
    <h2 id="tile-${tile}">${tile}</h2>
    ${
      top !== undefined &&
      html`<p class="stat">${top.stat}</p>
        <p class="hint">${top.about}</p> `
    }
    ${figure ?? null}
    <ul class="lines plain-list">
      ${lines.map((line) => html`<li>${renderLine(line)}</li>`)}
    </ul>
  </section>`;
}

function renderLine({ title, path, tone, headline, facts, ageMs }: CardLine & { ageMs: number }): Html {
  return html`<h3><a href="${path}">${title}</a></h3>
    <p class="${tone}"><strong>${headline}</strong></p>
    ${
      facts.length > 0 &&
      html`<dl>
        ${facts.map(
          ({ name, value }) =>
            html`<div>
              <dt>${name}</dt>
              <dd>${value}</dd>
            </div>`,
        )}
      </dl>`
    }
    ${ageHint(ageMs)}`;
}
