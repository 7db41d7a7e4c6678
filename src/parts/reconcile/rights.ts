import { type DatabaseRights, words } from "../../app/rights.ts";

export const reconcileRights: DatabaseRights = {
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
};
