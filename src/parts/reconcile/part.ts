import { words } from "../../app/rights.ts";
import type { Part } from "../../app/part.ts";
import { sqlFilesBeside } from "../../platform/postgres/sql-file.ts";
import { reconcileReadings } from "./metrics.ts";

const inFolder = sqlFilesBeside(new URL("./", import.meta.url));

/** Proves every night that the mirror equals the service, and heals it. */
export const reconcile: Part = {
  name: "reconcile",
  rights: {
    tables: {
      "reconcile.runs": { backup: "keep", worker: "arw", reports: "r", dashboard: "r", bi: "r" },
      // Triggers write what became of runs and findings: reports as of a time rest on it.
      "reconcile.run_states": { backup: "keep", worker: "r", reports: "r", dashboard: "r", bi: "r" },
      "reconcile.coverage": { backup: "keep", worker: "arw", reports: "r", dashboard: "r", bi: "r" },
      "reconcile.doubts": { backup: "keep", worker: "arwd", reports: "r", dashboard: "r", bi: "r" },
      // A person decides about a finding by functions that record it (src/parts/reconcile/findings/decide-finding.sql).
      "reconcile.findings": { backup: "keep", worker: "arw", reports: "r", dashboard: "r", bi: "r" },
      "reconcile.finding_versions": {
        backup: "keep",
        worker: "r",
        reports: "r",
        dashboard: "r",
        bi: "r",
      },
      "reconcile.daily_sums": { backup: "keep", worker: "arwd", reports: "r", dashboard: "r", bi: "r" },
      "reconcile.account": { backup: "keep", worker: "ard", dashboard: "r" },
      "reconcile.run_orders": {
        backup: "keep",
        worker: { all: "r", update: words("outcome error ended_at") },
        dashboard: { all: "ra", update: words("outcome error ended_at") },
      },
      // A token never goes back.
      "reconcile.leases": { backup: "keep", worker: "arw", dashboard: "r" },
      // Useful only to a run in progress: it reads missing rows again.
      "reconcile.seen": { backup: "leave", worker: "ard" },
      // Processes of the lost system.
      "reconcile.order_takers": { backup: "leave", worker: "arwd", dashboard: "r" },
    },
    functions: {
      "reconcile.lock_finding": ["worker", "dashboard"],
      "reconcile.acknowledge_finding": ["worker", "dashboard"],
      "reconcile.heal_findings": ["worker", "dashboard"],
      "reconcile.keep_finding": [],
      "reconcile.keep_run_state": [],
    },
    given: ["reconcile.order_takers.seen_at"],
  },
  sql: () =>
    Promise.resolve({
      program: [
        ...inFolder("runs", "run-states"),
        ...inFolder("coverage", "slice-times"),
        ...inFolder("findings", "finding-dates", "finding-versions", "decide-finding"),
        ...inFolder("recheck", "recheck-times"),
      ],
    }),
  commands: [
    {
      lists: {
        "reconcile [options]":
          "compare the mirror with the service now and heal what differs; exit 0: equal (also after " +
          "healing), 3: drift is left, 4: incomplete, 5: healed (only with --fail-on-drift)",
        "import [options]": "fill an empty mirror from the service; resumes where it was interrupted",
      },
      load: async () => (await import("./cli/reconcile.ts")).registerReconcile,
    },
    {
      lists: { findings: "differences and broken invariants that reconciliation found" },
      load: async () => (await import("./cli/findings.ts")).registerFindings,
    },
    {
      lists: {
        "heal [options] <resource> <id>":
          "overwrite one object of the mirror with what the service shows now; prints what would " +
          "change and asks first",
      },
      load: async () => (await import("./cli/heal.ts")).registerHeal,
    },
  ],
  metrics: reconcileReadings,
  tasks: async (runtime, role) => (await import("./reconciliation.ts")).reconcileTasks(runtime, role.service),
  async work(runtime, { service }) {
    const { reconcileDeps, reconcileSettings } = await import("./reconciliation.ts");
    const { takeOrders } = await import("./ordered-runs.ts");
    const orders = takeOrders(await reconcileDeps(runtime, service), reconcileSettings(runtime));
    runtime.onClose(() => orders.close());
  },
  answers: (runtime) => ({
    lastFullAnswerStart: async (db) => (await import("./runs/runs.ts")).lastFullAnswerStart(db),
    async beginning(db) {
      const { orderTakers } = await import("./runs/run-orders.ts");
      const { lastFullAnswerStart } = await import("./runs/runs.ts");
      const [takers, last] = await Promise.all([orderTakers(db), lastFullAnswerStart(db)]);
      return { hasWorker: takers.alive > 0, hasRun: last !== null };
    },
    findingsOfObject: async (db, key) => (await import("./findings/search-findings.ts")).findingsOfObject(db, key),
    healEverything: async (service, options) =>
      (await import("./reconciliation.ts")).healEverything(runtime, service, options),
  }),
  pages: async (runtime, service) => [(await import("./pages/pages-of.ts")).reconciliationPagesOf(runtime, service)],
  checks: [
    {
      names: ["reconciliation"],
      needsDatabase: true,
      examine: async (runtime) => [await (await import("./check-run-lease.ts")).checkRunLease(runtime)],
    },
  ],
  async erase(trx, { ids, named }) {
    const { findingsOn, redactFindings, redactNotes } = await import("./findings/redact-findings.ts");
    const findings = await redactFindings(trx, ids);
    const reasons = await redactNotes(trx, named);
    return { counts: { findings }, reasons, subjects: [{ kind: "finding", ids: await findingsOn(trx, ids) }] };
  },
};
