import { counted } from "../../platform/readable-text.ts";
import { behind, readProof } from "../../parts/reports/base/report-facts.ts";
import { readStandby } from "../../parts/reports/base/read-standby.ts";
import { programReports } from "../../parts/reports/catalogue/all.ts";
import { deliveriesBetween } from "../../parts/reports/catalogue/delivery-statement/deliveries-between.ts";
import { programmesNear } from "../../parts/reports/catalogue/network-monitor/programmes-near.ts";
import { ownReports } from "../../parts/reports/own/own-reports.ts";
import { type CheckResult, ok, skipped, warning } from "../../app/check-result.ts";
import type { Runtime } from "../../app/runtime.ts";
import type { ReportsRoom, Standby } from "./room-interfaces.ts";

export const reportsRoom: ReportsRoom = {
  sql: [new URL("../../parts/reports/close/append-only.sql", import.meta.url), ...programReports.map(({ sql }) => sql)],
  ownSql: ownReports.map(({ sql }) => sql),
  // Loaded on demand: only a worker sends mails.
  tasks: async (...args) => (await import("../../parts/reports/report-mail.ts")).reportMailTasks(...args),
  questions: { programmesNear, deliveriesBetween },
  funnelOfMonth: async (...args) =>
    (await import("../../parts/reports/catalogue/dunning-funnel/funnel-of-month.ts")).funnelOfMonth(...args),
  check: examineProof,
  eraseReasons: async (...args) => (await import("../../parts/reports/close/erase-reasons.ts")).eraseReasons(...args),
  presumeMailed: async (...args) => (await import("../../parts/reports/report-mail.ts")).presumeReportsMailed(...args),
  closes: {
    verify: async (db) => (await import("../../parts/reports/close/verify.ts")).verifyCloses(db),
    recompute: async (db, months, before) =>
      (await import("../../parts/reports/close/recompute.ts")).recomputeClosedMonths(db, months, before),
  },
  checkStandby: examineStandby,
};

const standbyCheck = "reports standby";

/** Checks that the standby is one of this database, and not too far behind for a report of now. */
async function examineStandby(runtime: Pick<Runtime, "db">, standby: Standby): Promise<CheckResult> {
  const at = await standby.connect();
  const replay = await readStandby(await runtime.db(), at);
  await standby.assertMigrated(at);
  const detail = `it is ${behind(replay)}`;
  if (replay.lagMs <= standby.maxLagSeconds * 1_000) return ok(standbyCheck, detail);
  return warning(
    standbyCheck,
    `${detail}: reports of now are refused (REPORTS_MAX_LAG_SECONDS=${standby.maxLagSeconds})`,
    "look at the standby's log, its replay and its load; a delay that is meant needs a larger REPORTS_MAX_LAG_SECONDS",
  );
}

/**
 * Checks the proof for everything before the last run's T0. Uses the reports' own definition, so both give the same
 * verdict.
 */
async function examineProof(runtime: Pick<Runtime, "db">): Promise<CheckResult> {
  const db = await runtime.db();
  const last = await db("reconcile.runs")
    .whereNot("state", "running")
    .whereNot("kind", "range")
    .orderBy("id", "desc")
    .first<{ t0: Date } | undefined>("t0");
  if (last === undefined)
    return skipped("proof", 'nothing was read from the service yet: run "node src/bin/tallyhook.js import"');
  const t0 = last.t0.toISOString();
  const { verdict, readUntil, openFindings } = await readProof(db, { fromUtc: t0, toUtc: t0 }, null);
  if (verdict === "PASS") return ok("proof", `everything created before ${t0} is proved`);
  return verdict === "INCOMPLETE"
    ? warning(
        "proof",
        readUntil === null
          ? `INCOMPLETE: what was created before ${t0} is not proved from the first record on`
          : `INCOMPLETE: what was created before ${t0} is proved only until ${readUntil}`,
        'run "node src/bin/tallyhook.js reconcile"',
      )
    : warning(
        "proof",
        `FAIL: ${counted(openFindings, "finding is", "findings are")} open`,
        'run "node src/bin/tallyhook.js findings list"',
      );
}
