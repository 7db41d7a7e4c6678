import { tallyhook } from "../../../platform/command-line.ts";
import { listProofs, provedParts } from "../coverage/proof.ts";
import { sumOpenFindings } from "../findings/search-findings.ts";
import type { PageDeps, Route } from "../../../app/dashboard/route.ts";
import { boundsOf, calendarOf, monthOf } from "./calendar.ts";
import { renderCoverage } from "./coverage-view.ts";
import { framed } from "./frame.ts";
import { type Trust, trustOf } from "./trust.ts";

export const coverageRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/reconciliation",
    access: "status:read",
    async answer(deps, { query }) {
      const { db, timeZone, clock, serviceClock } = deps;
      const [now, at] = [serviceClock.now(), clock.now()];
      const month = monthOf(query.get("month"), now, timeZone);
      const [proofs, open, parts] = await Promise.all([
        listProofs(db, { now, at }),
        sumOpenFindings(db),
        provedParts(db, { ...boundsOf(month, timeZone), at }),
      ]);
      const trust = trustOf({ proofs, open, now, timeZone });
      const calendar = calendarOf(month, { proofs, parts, now, timeZone });
      return {
        kind: "page",
        title: "Reconciliation",
        body: framed("Coverage", renderCoverage({ trust, month: calendar, timeZone })),
        command: tallyhook("reconcile --dry-run"),
      };
    },
  },
];

/** The mirror's trust now. Two statements. */
export async function readTrust({
  db,
  clock,
  serviceClock,
  timeZone,
}: Pick<PageDeps, "db" | "clock" | "serviceClock" | "timeZone">): Promise<Trust> {
  const now = serviceClock.now();
  const [proofs, open] = await Promise.all([listProofs(db, { now, at: clock.now() }), sumOpenFindings(db)]);
  return trustOf({ proofs, open, now, timeZone });
}
