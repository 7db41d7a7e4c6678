import type { Part } from "../../app/part.ts";

/** Reports that finance signs, and the close of a month. */
export const reports: Part = {
  name: "reports",
  rights: {
    tables: {
      // Closing or preparing a month locks these tables, which takes the right to update: their triggers refuse updates.
      "reports.closes": { backup: "keep", worker: "r", reports: "arL", dashboard: "arL", bi: "r" },
      "reports.preparations": { backup: "keep", reports: "arL", dashboard: "arL" },
      // Its triggers write it.
      "reports.closings": { backup: "keep" },
      "reports.closed_reports": {
        backup: "keep",
        worker: "r",
        reports: "ar",
        dashboard: "ar",
        bi: "r",
      },
      "reports.closed_rows": { backup: "keep", worker: "r", reports: "ar", dashboard: "ar", bi: "r" },
      "reports.closed_movements": {
        backup: "keep",
        worker: "r",
        reports: "ar",
        dashboard: "ar",
        bi: "r",
      },
      "reports.closed_evidence": {
        backup: "keep",
        worker: "r",
        reports: "ar",
        dashboard: "ar",
        bi: "r",
      },
      "reports.preparation_ends": { backup: "keep", reports: "ar", dashboard: "ar" },
      "reports.mailings": { backup: "keep", worker: "arw" },
    },
    functions: {
      "reports.refuse_addition": [],
      "reports.check_close": [],
    },
    given: ["reports.closes.closed_at", "reports.mailings.next_attempt_at"],
  },
  async sql() {
    const { programReports } = await import("./catalogue/all.ts");
    const { ownReports } = await import("./own/own-reports.ts");
    const close = new URL("./close/append-only.sql", import.meta.url);
    return { program: [close, ...programReports.map(({ sql }) => sql)], own: ownReports.map(({ sql }) => sql) };
  },
  commands: [
    {
      lists: { "report [options] [name] [month]": 'print, save or mail a finance report; "report list" explains each' },
      load: async () => (await import("./cli/report.ts")).registerReport,
    },
    {
      lists: { "close [options] <month>": "freeze a month permanently: the rows of every report, under one seal" },
      load: async () => (await import("./cli/close.ts")).registerClose,
    },
  ],
  tasks: async (runtime) => (await import("./report-mail.ts")).reportMailTasks(runtime),
  answers: () => ({
    programmesNear: async (...args) =>
      (await import("./catalogue/network-monitor/programmes-near.ts")).programmesNear(...args),
    deliveriesBetween: async (...args) =>
      (await import("./catalogue/delivery-statement/deliveries-between.ts")).deliveriesBetween(...args),
    funnelOfMonth: async (...args) =>
      (await import("./catalogue/dunning-funnel/funnel-of-month.ts")).funnelOfMonth(...args),
    declinesByWeek: async (...args) =>
      (await import("./catalogue/dunning-funnel/declines-by-week.ts")).declinesByWeek(...args),
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
