import type { Knex } from "knex";
import { assessRun } from "../alerts/assess-run.ts";
import type { AlertDesk } from "../alerts/desk.ts";
import type { Log } from "../platform/log.ts";
import { computeCoverage, readIntervals } from "./coverage.ts";
import type { Coverage } from "./coverage.ts";
import { answeredRange } from "./plan.ts";
import { finishRun } from "./runs.ts";
import type { Run } from "./runs.ts";
import { bound } from "./slice.ts";
import { amountsAsText, runTotals } from "./totals.ts";
import type { RunTotals } from "./totals.ts";

export interface ReconcileResult {
  run: Run;
  totals: RunTotals;
  coverage: Coverage;
  /** The run was read to its end, and nothing of the time before T0 is left out. */
  complete: boolean;
  /** Why it could not do all it had to; null where it could. */
  error: string | null;
}

/** Reckons a run up from its ledger, closes it, and tells how it ended. */
export async function finish(
  { db, log, alerts }: { db: Knex; log: Log; alerts: AlertDesk },
  run: Run,
  probeCalls: number,
  error: string | null,
): Promise<ReconcileResult> {
  const totals = await runTotals(db, run.id, probeCalls);
  let coverage: Coverage = { complete: false, gaps: [] };
  const stored = { ...totals, amountAtRiskMinor: amountsAsText(totals.amountAtRiskMinor) };
  const complete = await finishRun(db, run.id, { totals: stored, error }, async (trx) => {
    coverage = await coverageOf(trx, run);
    return isProved(totals, coverage);
  });
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

/** Nothing that it had to read was left out, and what it and earlier runs proved has no gap. Pure. */
const isProved = ({ slices, confirmed }: RunTotals, coverage: Coverage): boolean =>
  slices.failed === 0 &&
  slices.pending === 0 &&
  (confirmed["unsettled"] ?? 0) === 0 &&
  coverage.complete;

/** Of a range what was asked for, by this run alone; else everything before T0, as long as it counts. */
async function coverageOf(db: Knex, run: Run): Promise<Coverage> {
  const { id, kind, t0 } = run;
  if (kind === "range") {
    const { from, before } = answeredRange(run);
    const range = { from: bound(from), until: bound(before) };
    return computeCoverage(await readIntervals(db, { run: id }), range);
  }
  const intervals = await readIntervals(db, { freshAt: t0 });
  return computeCoverage(intervals, { from: null, until: bound(t0) });
}
