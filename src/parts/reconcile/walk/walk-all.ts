import {
  ServiceAnswerError,
  ServiceRefusedError,
  ServiceUnavailableError,
} from "../../../core/client/service-errors.ts";
import { inTransaction } from "../../../platform/postgres/transactions.ts";
import { type Finding, recordFindings } from "../findings/findings.ts";
import { type LedgerSlice, closeSlice, pendingSlices, restartSlice } from "../coverage/ledger.ts";
import type { Patience } from "../patience.ts";
import { estimatePlan } from "../plan.ts";
import { UnusablePage } from "./page-span.ts";
import type { Run } from "../runs/runs.ts";
import type { ApplyContext } from "../compare/apply-differences.ts";
import type { ReconcileSettings } from "../settings.ts";
import { type WalkContext, type WalkDeps, walkSlice } from "./walk-slice.ts";

export interface WalkProgress {
  slices: number;
  slicesDone: number;
  /** Read by this process, without the pages read before a resume. */
  pages: number;
  rows: number;
  /** Estimated from the mirror: the service may hold more. */
  expectedRows: number;
  /** Objects that wait for their recheck. */
  doubtful: number;
  /** Until the last of them is due, or until the service accepts calls again; 0 while there is something to read. */
  waitMs: number;
  /** The reason for waiting for the service; null where there is no wait. */
  waitReason: string | null;
}

interface WalkAll {
  run: Run;
  settings: ReconcileSettings;
  failedSince: Date;
  patience: Patience;
  onProgress(progress: WalkProgress): void;
}

/**
 * Walks every slice that is not read to its end yet. A slice that cannot be proved fails, and the others continue. An
 * error that stops everything (no service, no permission) is thrown, and the run can be resumed.
 */
export async function walkAll(
  deps: WalkDeps,
  shared: ApplyContext & Pick<WalkContext, "cause" | "signal">,
  { run, settings, failedSince, patience, onProgress }: WalkAll,
): Promise<WalkProgress> {
  const slices = await pendingSlices(deps.db, run.id);
  const pageSize = run.pageSize ?? 100;
  const estimated = await estimatePlan(deps.db, slices, pageSize);
  const expectedRows = estimated.reduce((all, { rows }) => all + rows, 0);
  const progress: WalkProgress = {
    slices: slices.length,
    slicesDone: 0,
    pages: 0,
    rows: 0,
    expectedRows,
    doubtful: 0,
    waitMs: 0,
    waitReason: null,
  };
  const isPartial = run.kind === "nightly" && slices.some(({ step }) => step !== "all");
  const context: WalkContext = {
    ...shared,
    pageSize,
    pagesPerCheckpoint: settings.pagesPerCheckpoint,
    failedSince: isPartial ? failedSince : null,
    timeZone: settings.timeZone,
    onPage(rows) {
      progress.pages += 1;
      progress.rows += rows;
      onProgress({ ...progress });
    },
  };
  for (const slice of slices) {
    await walkWithRetries(deps, context, patience, slice);
    progress.slicesDone += 1;
    onProgress({ ...progress });
  }
  return progress;
}

async function walkWithRetries(
  deps: WalkDeps,
  context: WalkContext,
  patience: Patience,
  slice: LedgerSlice,
): Promise<void> {
  let restarts = 0;
  let outages = 0;
  for (let current = slice; ;) {
    try {
      return await walkSlice(deps, context, current);
    } catch (error) {
      if (context.signal.aborted) throw error;
      if (error instanceof ServiceUnavailableError) {
        await patience.waitAfter(error, ++outages);
      } else if (isRefusedCursor(error) && restarts++ === 0) {
        // The service may no longer know a cursor this old: start the slice again.
        await restartSlice(deps.db, current);
      } else {
        return await close(deps, context, current, error);
      }
      const again = (await pendingSlices(deps.db, slice.run)).find(({ number }) => number === slice.number);
      if (again === undefined) return;
      current = again;
    }
  }
}

const isRefusedCursor = (error: unknown): boolean =>
  error instanceof ServiceRefusedError && [400, 404].includes(error.status) && error.param !== "sort";

async function close({ db, log }: WalkDeps, { run }: WalkContext, slice: LedgerSlice, error: unknown): Promise<void> {
  const isRefused = error instanceof ServiceRefusedError && error.status !== 401 && error.status !== 403;
  if (!isRefused && !(error instanceof UnusablePage) && !(error instanceof ServiceAnswerError)) throw error;
  const note = error.message;
  const isCheck = slice.step === "order_check" && !(error instanceof ServiceAnswerError);
  log.warn({ slice: slice.number, step: slice.step, note }, "a slice was not read to its end");
  const sighting = { run, seenAt: slice.readAt ?? new Date(slice.createdBefore ?? 0) };
  await inTransaction(db, async (trx) => {
    await closeSlice(trx, slice, { state: isCheck ? "skipped" : "failed", note });
    if (isCheck) await recordFindings(trx, sighting, [unsupportedSort(slice, note)]);
  });
}

const unsupportedSort = ({ path, resource }: LedgerSlice, note: string): Finding => ({
  key: `unsupported_sort:${path}`,
  class: "unsupported_sort",
  identity: null,
  severity: "warning",
  resource,
  objectId: null,
  differences: [],
  amountAtRiskMinor: null,
  currency: null,
  cause: null,
  evidence: { note },
});
