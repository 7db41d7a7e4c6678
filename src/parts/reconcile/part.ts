import type { Part } from "../../app/part.ts";
import { sqlFilesBeside } from "../../platform/postgres/sql-file.ts";
import { reconcileReadings } from "./metrics.ts";
import { reconcileRights } from "./rights.ts";

const inFolder = sqlFilesBeside(new URL("./", import.meta.url));

/** Proves every night that the mirror equals the service, and heals it. */
export const reconcile: Part = {
  name: "reconcile",
  rights: reconcileRights,
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
    { names: ["reconcile", "import"], load: async () => (await import("./cli/reconcile.ts")).registerReconcile },
    { names: ["findings"], load: async () => (await import("./cli/findings.ts")).registerFindings },
    { names: ["heal"], load: async () => (await import("./cli/heal.ts")).registerHeal },
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
