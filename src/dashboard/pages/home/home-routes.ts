import { setTimeout as sleep } from "node:timers/promises";
import type { PageGroup, SummaryCard } from "../../page-group.ts";
import type { PageDeps, Visitor } from "../../route.ts";
import { readTrust } from "../reconciliation/coverage-routes.ts";
import type { Trust } from "../reconciliation/trust.ts";
import { type Beginning, readBeginning } from "./first-steps.ts";
import { renderHome } from "./view.ts";

/** How far the mirror is proved, and what of all this needs somebody now. */
export const homePages = (groups: readonly PageGroup[]): PageGroup => ({
  place: { path: "/", name: "Home", access: "status:read" },
  routes: [
    {
      method: "GET",
      path: "/",
      access: "status:read",
      async answer(deps, { visitor }) {
        const [trust, beginning, ...cards] = await Promise.all([
          orUnknown<Trust>(deps, "trust", () => readTrust(deps)),
          orUnknown<Beginning>(deps, "first steps", () => readBeginning(deps.db)),
          ...groups.map((group) => cardOf(group, deps, visitor)),
        ]);
        const shown = cards.filter((card) => card !== null);
        return {
          kind: "page",
          title: "Home",
          body: renderHome({
            trust,
            beginning,
            cards: shown,
            seesAll: groups.every(
              ({ summary }) => summary === undefined || visitor.permissions.has(summary.access),
            ),
          }),
          command: "npx tallyhook doctor",
        };
      },
    },
  ],
});

/** Home waits so long for a card, and shows the others without it. */
const patienceMs = 2_500;

/** Null where the group has no card for this visitor. */
async function cardOf(
  { place, summary }: PageGroup,
  deps: PageDeps,
  visitor: Visitor,
): Promise<SummaryCard | null> {
  if (summary === undefined || !visitor.permissions.has(summary.access)) return null;
  const title = place?.name ?? "Unknown";
  const card = await orUnknown(deps, title, () => summary.read(deps, visitor));
  return (
    card ?? {
      title,
      path: place?.path ?? "/",
      tone: "warn",
      headline: "Unknown",
      facts: [],
      reasons: [`${title}: this could not be read just now; the log of the dashboard says why.`],
    }
  );
}

/** Null where it cannot be read in time; the reason is in the log. */
async function orUnknown<T>(
  { log }: PageDeps,
  part: string,
  read: () => Promise<T>,
): Promise<T | null> {
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
