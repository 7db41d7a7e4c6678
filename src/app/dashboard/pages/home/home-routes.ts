import { setTimeout as sleep } from "node:timers/promises";
import { tallyhook } from "../../../../platform/command-line.ts";
import type { PageGroup, Summary, SummaryCard } from "../../page-group.ts";
import type { PageDeps, Route, Visitor } from "../../route.ts";
import { type SlowReads, createSlowReads } from "../../elements/slow-reads.ts";
import type { Answers } from "../../../answers.ts";
import { type Beginning, readBeginning } from "./first-steps.ts";
import { type ShownCard, renderHome } from "./view.ts";

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
