import type { PageGroup, SummaryCard } from "../../page-group.ts";
import type { PageDeps, Visitor } from "../../route.ts";
import { renderHome } from "./view.ts";

/** What of all this needs somebody now. */
export const homePages = (groups: readonly PageGroup[]): PageGroup => ({
  place: { path: "/", name: "Home", access: "status:read" },
  routes: [
    {
      method: "GET",
      path: "/",
      access: "status:read",
      async answer(deps, { visitor }) {
        const cards = await Promise.all(groups.map((group) => cardOf(group, deps, visitor)));
        const shown = cards.filter((card) => card !== null);
        return { kind: "page", title: "Home", body: renderHome({ cards: shown }) };
      },
    },
  ],
});

/** Null where the group has no card for this visitor. */
async function cardOf(
  { place, summary }: PageGroup,
  deps: PageDeps,
  visitor: Visitor,
): Promise<SummaryCard | null> {
  if (summary === undefined || !visitor.permissions.has(summary.access)) return null;
  try {
    return await summary.read(deps, visitor);
  } catch (err) {
    deps.log.warn({ err, page: place?.path }, "a card of home could not be read");
    const title = place?.name ?? "Unknown";
    return {
      title,
      path: place?.path ?? "/",
      tone: "warn",
      headline: "Unknown",
      facts: [],
      reasons: [`${title}: this could not be read just now; the log of the dashboard says why.`],
    };
  }
}
