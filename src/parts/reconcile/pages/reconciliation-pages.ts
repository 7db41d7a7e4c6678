import { counted } from "../../../platform/readable-text.ts";
import { listRuns } from "../runs/list-runs.ts";
import { orderTakers } from "../runs/run-orders.ts";
import { type OpenFindings, sumOpenFindings } from "../findings/search-findings.ts";
import type { PageGroup, SummaryCard } from "../../../app/dashboard/page-group.ts";
import { ago } from "../../../app/dashboard/elements/values.ts";
import type { PageDeps } from "../../../app/dashboard/route.ts";
import { coverageRoutes, readTrust } from "./coverage-routes.ts";
import { findingRoutes } from "./finding-routes.ts";
import { type HealTools, healRoutes } from "./heal-routes.ts";
import { type NextRun, runRoutes } from "./run-routes.ts";
import { runbook } from "../../../app/dashboard/elements/runbook.ts";
import { amountsOf, renderTrust } from "./trust.ts";

export interface ReconciliationTools {
  nextRun: NextRun;
  /** Created when first needed: most visitors never heal. */
  heal(): Promise<HealTools>;
}

/** Proofs, findings and heals. */
export const reconciliationPages = ({ nextRun, heal }: ReconciliationTools): PageGroup => ({
  place: { path: "/reconciliation", name: "Reconciliation", access: "status:read", area: "Data" },
  routes: [...coverageRoutes, ...runRoutes(nextRun), ...findingRoutes, ...healRoutes(heal)],
  summary: { access: "status:read", read: (deps) => readSummary(deps, nextRun) },
  lead: {
    async read(deps) {
      const trust = await readTrust(deps);
      return {
        tone: trust.tone,
        body: renderTrust(trust),
        reasons: trust.reasons,
        also: {
          tile: "Month",
          title: "Proof",
          path: "/reconciliation",
          tone: trust.tone,
          headline: trust.headline,
          facts: [],
        },
      };
    },
  },
});

async function readSummary({ db, clock, timeZone }: PageDeps, nextRun: NextRun): Promise<SummaryCard> {
  const [open, [last], takers] = await Promise.all([sumOpenFindings(db), listRuns(db, { limit: 1 }), orderTakers(db)]);
  const left = open.filter(({ isAcknowledged }) => !isAcknowledged);
  const n = left.reduce((all, row) => all + row.n, 0);
  const other = countOf(left.filter(({ isDrift }) => !isDrift));
  const amounts = amountsOf(left);
  const reasons = [
    ...(takers.alive === 0
      ? [{ text: "No worker runs: no event is applied and no run begins.", ...runbook("silence_worker") }]
      : []),
    ...(last?.state === "incomplete" || last?.state === "abandoned"
      ? [
          {
            text: `The last run did not prove everything: run ${last.id} is ${last.state}.`,
            path: `/reconciliation/runs/${last.id}`,
            next: "See the run",
          },
        ]
      : []),
    ...(other > 0
      ? [
          {
            text: `${counted(other, "finding", "findings")} of broken accounting rules, or of the endpoint, ${other === 1 ? "is" : "are"} open.`,
            path: "/reconciliation/findings",
            next: "See them",
          },
        ]
      : []),
  ];
  const isBad = left.some(({ severity }) => severity !== "warning") || takers.alive === 0;
  return {
    title: "Reconciliation",
    path: n > 0 ? "/reconciliation/findings" : "/reconciliation/runs",
    count: n,
    tone: isBad ? "bad" : reasons.length > 0 || n > 0 ? "warn" : "good",
    headline: n === 0 ? "Nothing open" : counted(n, "open finding"),
    also: {
      tile: "Money",
      title: "At risk",
      path: "/reconciliation/findings",
      tone: amounts.length === 0 ? "good" : "bad",
      headline: amounts.length === 0 ? "Nothing" : amounts.join(", "),
      facts: [{ name: "Open findings", value: n }],
    },
    facts: [
      {
        name: "Last run",
        value: last === undefined ? "none yet" : [last.state, ", ", ago(last.startedAt, timeZone)],
      },
      { name: "Next run", value: ago(nextRun(clock.now()), timeZone) },
      { name: "Workers", value: takers.alive === 0 ? "none" : takers.alive },
    ],
    reasons,
  };
}

const countOf = (rows: readonly OpenFindings[]): number => rows.reduce((all, { n }) => all + n, 0);
