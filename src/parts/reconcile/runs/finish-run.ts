import type { Knex } from "knex";
import type { RunListener } from "../../../app/run-listener.ts";
import type { Log } from "../../../platform/log.ts";
import { type Coverage, computeCoverage, readIntervals } from "../coverage/coverage.ts";
import type { Tally } from "../coverage/ledger.ts";
import { boundText } from "../coverage/slice.ts";
import { driftClasses } from "../findings/findings.ts";
import { answeredRange } from "../plan.ts";
import { type Run, finishRun } from "./runs.ts";

export interface ReconcileResult {
  run: Run;
  totals: RunTotals;
  coverage: Coverage;
  /** The run was read to its end, without a gap before T0. */
  complete: boolean;
  /** The reason why the run is incomplete; null where it is complete. */
  error: string | null;
  /** The time until which the service asked for no calls, by the database's clock; null where it did not. */
  resumeAfter: Date | null;
}

/** Computes a run's totals and whether it is complete, ends it, and tells the listener. */
export async function finishReconciliation(
  { db, log, listener }: { db: Knex; log: Log; listener: Pick<RunListener, "runEnded"> },
  run: Run,
  probeCalls: number,
  { error, resumeAfterMs = null }: { error: string | null; resumeAfterMs?: number | null },
): Promise<ReconcileResult> {
  const totals = await runTotals(db, run.id, probeCalls);
  let coverage: Coverage = { complete: false, gaps: [] };
  const stored = { ...totals, amountAtRiskMinor: amountsAsText(totals.amountAtRiskMinor) };
  const end = { totals: stored, error, resumeAfterMs };
  const { complete, resumeAfter } = await finishRun(db, run.id, end, async (trx) => {
    coverage = await coverageOf(trx, run);
    return isProved(totals, coverage);
  });
  const { kind, id, isInitialImport } = run;
  log.info({ run: id, kind, complete, error }, complete ? "a run proved the mirror" : "a run ended incomplete");
  await listener.runEnded({ db, log }, { id, kind, isInitialImport, complete, error, ...totals });
  return {
    run: { ...run, state: complete ? "complete" : "incomplete" },
    totals,
    coverage,
    complete,
    error,
    resumeAfter,
  };
}

/** Everything planned was read, and the coverage by this and earlier runs has no gap. */
const isProved = ({ slices, confirmed }: RunTotals, coverage: Coverage): boolean =>
  slices.failed === 0 && slices.pending === 0 && (confirmed["unsettled"] ?? 0) === 0 && coverage.complete;

/**
 * For a range: the coverage of that range by this run alone. Otherwise of everything before T0, by reads that still
 * count.
 */
async function coverageOf(db: Knex, run: Run): Promise<Coverage> {
  const { id, kind, t0 } = run;
  if (kind === "range") {
    const { from, before } = answeredRange(run);
    const range = { from: boundText(from), until: boundText(before) };
    return computeCoverage(await readIntervals(db, { run: id }), range);
  }
  const intervals = await readIntervals(db, { countForMs: 0 });
  return computeCoverage(intervals, { from: null, until: boundText(t0) });
}

/** A run's results, computed from its ledger, its rechecks and its findings. */
export interface RunTotals {
  slices: { complete: number; skipped: number; failed: number; pending: number };
  pages: number;
  /** Rows read from the lists, by resource. */
  rows: Record<string, number>;
  /** Objects compared, by classification. */
  verdicts: Tally;
  /** Objects rechecked by id, by outcome. */
  confirmed: Record<string, number>;
  /** Calls to the service: pages, reads by id, and the probe for the page size. */
  calls: number;
  /** Drift findings that this run healed, by class. */
  healed: Record<string, number>;
  /** Open drift findings of all runs, without acknowledged ones. */
  left: Record<string, number>;
  /** Drift findings that a person has acknowledged: mirror and service still differ there. */
  acknowledged: Record<string, number>;
  /** At risk by the findings left, in minor units by currency. */
  amountAtRiskMinor: Record<string, bigint>;
  /** Open findings that are not drift: enforced invariants, the endpoint, an unsupported sort. */
  otherFindings: Record<string, number>;
}

/** Amounts for JSON: minor units as text, as in the reports' JSON. */
export const amountsAsText = (minorByCurrency: Readonly<Record<string, bigint>>): Record<string, string> =>
  Object.fromEntries(Object.entries(minorByCurrency).map(([code, minor]) => [code, String(minor)]));

export const sum = (counts: Readonly<Record<string, number | undefined>>): number =>
  Object.values(counts).reduce<number>((all, n) => all + (n ?? 0), 0);

/** Computes a run's totals. Only reads. */
export async function runTotals(db: Knex, run: number, probeCalls: number): Promise<RunTotals> {
  const slices = await db("reconcile.coverage").where({ run }).select<
    {
      state: keyof RunTotals["slices"];
      resource: string;
      pages: number;
      rows: string;
      tally: Tally;
    }[]
  >("state", "resource", "pages", "rows", "tally");
  const totals: RunTotals = {
    slices: { complete: 0, skipped: 0, failed: 0, pending: 0 },
    pages: 0,
    rows: {},
    verdicts: {},
    confirmed: {},
    calls: probeCalls,
    healed: {},
    left: {},
    acknowledged: {},
    amountAtRiskMinor: {},
    otherFindings: {},
  };
  for (const slice of slices) {
    totals.slices[slice.state] += 1;
    totals.pages += slice.pages;
    totals.rows[slice.resource] = (totals.rows[slice.resource] ?? 0) + Number(slice.rows);
    for (const [verdict, n] of Object.entries(slice.tally) as [keyof Tally, number][]) {
      totals.verdicts[verdict] = (totals.verdicts[verdict] ?? 0) + n;
    }
  }
  totals.calls += totals.pages;
  await addRecheckTotals(db, run, totals);
  await addFindingTotals(db, run, totals);
  return totals;
}

async function addRecheckTotals(db: Knex, run: number, totals: RunTotals): Promise<void> {
  const rows = await db("reconcile.doubts")
    .where({ run })
    .whereNot({ why: "unreadable" })
    .groupBy("state", "outcome")
    .select<{ state: string; outcome: string | null; n: string; reads: string }[]>(
      "state",
      "outcome",
      db.raw("count(*) as n, sum(reads) as reads"),
    );
  for (const { state, outcome, n, reads } of rows) {
    const name = state === "settled" ? (outcome ?? "settled") : "unsettled";
    totals.confirmed[name] = (totals.confirmed[name] ?? 0) + Number(n);
    totals.calls += Number(reads);
  }
}

async function addFindingTotals(db: Knex, run: number, totals: RunTotals): Promise<void> {
  const rows = await db("reconcile.findings")
    .whereRaw("(state <> 'healed' or run = ?)", [run])
    .whereRaw("reconcile.is_enforced(class, evidence->>'mode')")
    .groupBy("class", "identity", "state", "currency")
    .select<
      {
        class: string;
        identity: string | null;
        state: string;
        currency: string | null;
        n: string;
        amount: string | null;
      }[]
    >("class", "identity", "state", "currency", db.raw("count(*) as n, sum(amount_at_risk_minor) as amount"));
  for (const row of rows) {
    const isDrift = isDriftClass(row.class);
    const counts = isDrift ? countsOfDrift(totals, row.state) : otherCounts(totals, row.state);
    if (counts === null) continue;
    const name = row.identity ?? row.class;
    counts[name] = (counts[name] ?? 0) + Number(row.n);
    if (counts !== totals.left || row.currency === null) continue;
    totals.amountAtRiskMinor[row.currency] = (totals.amountAtRiskMinor[row.currency] ?? 0n) + BigInt(row.amount ?? 0);
  }
}

function countsOfDrift(totals: RunTotals, state: string): Record<string, number> {
  if (state === "healed") return totals.healed;
  return state === "acknowledged" ? totals.acknowledged : totals.left;
}

const otherCounts = (totals: RunTotals, state: string): Record<string, number> | null =>
  state === "healed" || state === "acknowledged" ? null : totals.otherFindings;

const isDriftClass = (name: string): boolean => (driftClasses as readonly string[]).includes(name);
