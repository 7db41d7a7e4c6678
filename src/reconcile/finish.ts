import type { Knex } from "knex";
import { assessRun } from "../alerts/assess-run.ts";
import type { AlertDesk } from "../alerts/desk.ts";
import type { Log } from "../platform/log.ts";
import { computeCoverage, freshSince, readIntervals } from "./coverage.ts";
import type { Coverage } from "./coverage.ts";
import { answeredRange } from "./plan.ts";
import { finishRun } from "./runs.ts";
import type { Run } from "./runs.ts";
import type { ReconcileSettings } from "./settings.ts";
import { bound } from "./slice.ts";
import { runTotals } from "./totals.ts";
import type { RunTotals } from "./totals.ts";

export interface ReconcileResult {
  run: Run;
  totals: RunTotals;
  coverage: Coverage;
  /** The run was read to its end, and nothing of the time before T0 is left out. */
  complete: boolean;
  /** Why not, for people; null where it is. */
  error: string | null;
}

/** Reckons a run up from its ledger, closes it, and tells how it ended. */
export async function finish(
  { db, log, alerts }: { db: Knex; log: Log; alerts: AlertDesk },
  settings: ReconcileSettings,
  run: Run,
  probeCalls: number,
  error: string | null,
): Promise<ReconcileResult> {
  const totals = await runTotals(db, run.id, probeCalls);
  const coverage = await coverageOf(db, settings, run);
  const { failed, pending } = totals.slices;
  const complete =
    error === null &&
    failed === 0 &&
    pending === 0 &&
    (totals.confirmed["unsettled"] ?? 0) === 0 &&
    coverage.complete;
  await finishRun(db, run.id, { state: complete ? "complete" : "incomplete", totals, error });
  const { kind, id, firstFill } = run;
  await assessRun({ db, log }, alerts, { id, kind, firstFill, complete, error, ...totals });
  return {
    run: { ...run, state: complete ? "complete" : "incomplete" },
    totals,
    coverage,
    complete,
    error,
  };
}

/** Of a range what was asked for, by this run alone; else everything before T0, read within the last R nights. */
async function coverageOf(
  db: Knex,
  { rotationNights }: ReconcileSettings,
  run: Run,
): Promise<Coverage> {
  const { id, kind, t0 } = run;
  if (kind === "range") {
    const { from, before } = answeredRange(run);
    const range = { from: bound(from), until: bound(before) };
    return computeCoverage(await readIntervals(db, { run: id }), range);
  }
  const intervals = await readIntervals(db, { since: freshSince(t0, rotationNights) });
  return computeCoverage(intervals, { from: null, until: bound(t0) });
}
