import type { Part } from "../../app/part.ts";
import { reportsRights } from "./rights.ts";

/** Reports that finance signs, and the close of a month. */
export const reports: Part = {
  name: "reports",
  rights: reportsRights,
  async sql() {
    const { programReports } = await import("./catalogue/all.ts");
    const { ownReports } = await import("./own/own-reports.ts");
    const close = new URL("./close/append-only.sql", import.meta.url);
    return { program: [close, ...programReports.map(({ sql }) => sql)], own: ownReports.map(({ sql }) => sql) };
  },
  commands: [
    { names: ["report"], load: async () => (await import("./cli/report.ts")).registerReport },
    { names: ["close"], load: async () => (await import("./cli/close.ts")).registerClose },
  ],
  tasks: async (runtime) => (await import("./report-mail.ts")).reportMailTasks(runtime),
  answers: () => ({
    programmesNear: async (...args) =>
      (await import("./catalogue/network-monitor/programmes-near.ts")).programmesNear(...args),
    deliveriesBetween: async (...args) =>
      (await import("./catalogue/delivery-statement/deliveries-between.ts")).deliveriesBetween(...args),
    funnelOfMonth: async (...args) =>
      (await import("./catalogue/dunning-funnel/funnel-of-month.ts")).funnelOfMonth(...args),
    closedMonths: {
      verify: async (db) => (await import("./close/verify.ts")).verifyCloses(db),
      recompute: async (...args) => (await import("./close/recompute.ts")).recomputeClosedMonths(...args),
    },
  }),
  pages: async (runtime) => [(await import("./pages/pages-of.ts")).reportPagesOf(runtime)],
  checks: [
    {
      names: ["proof"],
      needsDatabase: true,
      examine: async (runtime) => [await (await import("./check-reports.ts")).checkProof(runtime)],
    },
    {
      names: ["reports standby"],
      needsDatabase: false,
      examine: async (...args) => (await import("./check-reports.ts")).checkStandby(...args),
    },
  ],
  async erase(trx, { named }) {
    const { redacted, sealed } = await (await import("./close/erase-reasons.ts")).eraseReasons(trx, named);
    return { reasons: redacted, sealed };
  },
  async settle(trx, runtime, ranUntil) {
    await (await import("./report-mail.ts")).presumeReportsMailed(trx, runtime, ranUntil);
    return {};
  },
};
