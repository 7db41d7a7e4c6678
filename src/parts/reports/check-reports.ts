import { tallyhook } from "../../platform/command-line.ts";
import { type CheckResult, check, ok, skipped, warning } from "../../app/check-result.ts";
import type { Runtime } from "../../app/runtime.ts";
import { counted } from "../../platform/readable-text.ts";
import { type ReportsStandby, readStandby } from "./base/read-standby.ts";
import { behind, readProof } from "./base/report-facts.ts";
import { reportsStandbyOf } from "./standby.ts";

const standbyCheck = "reports standby";

/** Checks that the standby is one of this database, and not too far behind for a report of now; nothing without one. */
export async function checkStandby(runtime: Runtime, database: CheckResult): Promise<CheckResult[]> {
  const standby = reportsStandbyOf(runtime);
  if (standby === null) return [];
  if (database.status === "failed") return [skipped(standbyCheck, "the database is not ready")];
  return [await check(standbyCheck, () => examineStandby(runtime, standby))];
}

async function examineStandby(runtime: Pick<Runtime, "db">, standby: ReportsStandby): Promise<CheckResult> {
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
export async function checkProof(runtime: Pick<Runtime, "db">): Promise<CheckResult> {
  const db = await runtime.db();
  const last = await db("reconcile.runs")
    .whereNot("state", "running")
    .whereNot("kind", "range")
    .orderBy("id", "desc")
    .first<{ t0: Date } | undefined>("t0");
  if (last === undefined)
    return skipped("proof", `nothing was read from the service yet: run "${tallyhook("import")}"`);
  const t0 = last.t0.toISOString();
  const { verdict, readUntil, openFindings } = await readProof(db, { fromUtc: t0, toUtc: t0 }, null);
  if (verdict === "PASS") return ok("proof", `everything created before ${t0} is proved`);
  return verdict === "INCOMPLETE"
    ? warning(
        "proof",
        readUntil === null
          ? `INCOMPLETE: what was created before ${t0} is not proved from the first record on`
          : `INCOMPLETE: what was created before ${t0} is proved only until ${readUntil}`,
        `run "${tallyhook("reconcile")}"`,
      )
    : warning(
        "proof",
        `FAIL: ${counted(openFindings, "finding is", "findings are")} open`,
        `run "${tallyhook("findings list")}"`,
      );
}
