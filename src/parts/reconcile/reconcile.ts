import { withBelievedDates } from "../../core/client/believed-dates.ts";
import { ServiceError } from "../../core/client/service-errors.ts";
import type { Clock } from "../../platform/clock.ts";
import { TallyhookError } from "../../platform/errors.ts";
import { inTransaction } from "../../platform/postgres/transactions.ts";
import { failIncompleteSlices, walksEverything } from "./coverage/ledger.ts";
import { boundText } from "./coverage/slice.ts";
import { recordEditedRows, correctLateCauses } from "./findings/drift-findings.ts";
import { healCoveredFindings } from "./findings/findings.ts";
import { checkInvariants } from "./invariants/check-invariants.ts";
import { AskedToWaitError, type Patience, createPatience } from "./patience.ts";
import { takeOverRechecks } from "./recheck/rechecks.ts";
import { type RecheckContext, type RecheckDeps, runRechecks } from "./recheck/run-rechecks.ts";
import { absenceLimit, concludeAbsent, discardAbsences, countAbsent } from "./recheck/tombstones.ts";
import { recheckUnread } from "./recheck/unread.ts";
import type { RunListener } from "../../app/run-listener.ts";
import { type ReconcileResult, finishReconciliation } from "./runs/finish-run.ts";
import { type LeaseHolder, withRunLease } from "./runs/run-lease.ts";
import {
  type BeforeRun,
  type Run,
  type RunKind,
  abandonOthers,
  canResume,
  findRun,
  lastPutOff,
  openRun,
  putOffRun,
  reopenRun,
} from "./runs/runs.ts";
import { type ProbeResult, importedUntil, probePageSize, resumeOrStart } from "./runs/start-run.ts";
import type { Answers } from "../../app/answers.ts";
import { accountProblem } from "../../app/same-account.ts";
import { recordEndpointProblems } from "./endpoint-findings.ts";
import { type ReconcileSettings, dayMs } from "./settings.ts";
import { type WalkProgress, walkAll } from "./walk/walk-all.ts";

export interface ReconcileDeps extends RecheckDeps {
  /** This machine's clock. */
  clock: Clock;
  listener: RunListener;
  /** Problems of this deployment's webhook endpoint, which no walk finds. If absent, the endpoint is not checked. */
  endpointProblems?: NonNullable<Answers["endpointProblems"]>;
}

export interface ReconcileRequest {
  kind: RunKind;
  /**
   * Identifies one run permanently. The key of an unfinished run resumes it; that of a finished one gives `repeated`.
   * Without it the run gets a key of its own.
   */
  runKey?: string;
  /** Only for kind `range`: objects created at or after `rangeFrom` and before `rangeTo`. */
  rangeFrom?: Date;
  rangeTo?: Date;
}

export interface ReconcileOptions {
  signal?: AbortSignal;
  onProgress?(progress: WalkProgress): void;
  /** Called in the transaction that opens a run, not when one is resumed. If it throws, the run does not begin. */
  before?: BeforeRun;
}

const noProgress: WalkProgress = {
  slices: 0,
  slicesDone: 0,
  pages: 0,
  rows: 0,
  expectedRows: 0,
  doubtful: 0,
  waitMs: 0,
  waitReason: null,
};

type Steps = Required<Pick<ReconcileOptions, "signal" | "onProgress">>;

export type ReconcileOutcome =
  | { kind: "done"; result: ReconcileResult }
  /** Another process is reconciling this database. */
  | { kind: "busy"; holder: LeaseHolder }
  /** The run with this key has ended. */
  | { kind: "repeated"; runKey: string }
  /** The service asked the last run to come later, and that time has not come. Only for a request with a key. */
  | { kind: "put_off"; until: Date };

/**
 * Compares the mirror with the service, or with the requested range of it, and records what differs. Unless the run
 * only reports, it heals the differences too. It walks the slices of the plan page by page, rechecks uncertain objects,
 * and computes from the ledger whether anything was left out. One run at a time, by a lease; an interrupted run is
 * resumed. When the signal aborts, its reason is thrown and the run stays interrupted, as it does with `LeaseLostError`
 * when the lease is lost. Idempotent: a second run straight afterwards writes nothing into the mirror. Needs no
 * receiver, worker or queue. Throws the client's errors (401 and 403 immediately, an unreachable service after its
 * repeats). A run that was open then ends incomplete, and can be resumed; one that could not begin is recorded as
 * having read nothing, once for each `runKey`, so that the listener is notified. A run that the service puts off ends
 * incomplete as well, with the time to resume; until then, a request with a `runKey`, for which no person waits, makes
 * no calls.
 *
 * Every write of a run is in a transaction that was opened by `db.transaction` of the held lease: that is where an
 * earlier holder is refused.
 */
export async function reconcile(
  deps: ReconcileDeps,
  settings: ReconcileSettings,
  request: ReconcileRequest,
  { signal, onProgress = () => {}, before }: ReconcileOptions = {},
): Promise<ReconcileOutcome> {
  const put = request.runKey === undefined ? null : await lastPutOff(deps.db);
  if (put !== null && !put.isOver) return { kind: "put_off", until: put.until };
  const client = withBelievedDates(deps.client, deps.clock);
  const outcome = await withRunLease(
    deps,
    (held) =>
      reconcileAlone({ ...deps, client, db: held.db }, settings, request, {
        signal: signal === undefined ? held.signal : AbortSignal.any([signal, held.signal]),
        onProgress,
        ...(before === undefined ? {} : { before }),
      }),
    signal === undefined ? {} : { signal },
  );
  return outcome.kind === "done" ? outcome.value : outcome;
}

async function reconcileAlone(
  deps: ReconcileDeps,
  settings: ReconcileSettings,
  request: ReconcileRequest,
  { signal, onProgress, before }: Steps & Pick<ReconcileOptions, "before">,
): Promise<ReconcileOutcome> {
  const known = request.runKey === undefined ? null : await findRun(deps.db, request.runKey);
  if (known !== null && !(await canResume(deps.db, known.id))) {
    return { kind: "repeated", runKey: known.runKey };
  }
  const refuse = async (problem: string, facts: Partial<Pick<Refused, "probed" | "resumeAfterMs">>) =>
    recordRefused(deps, settings, request, { problem, before, ...facts });
  let last = noProgress;
  const tell = (progress: WalkProgress): void => onProgress((last = progress));
  const patience = createPatience({
    ...deps,
    signal,
    onWait: (waitMs, waitReason) => tell({ ...last, waitMs, waitReason }),
  });
  let probed: ProbeResult;
  let problem: string | null;
  try {
    probed = await patience.ask(() => probePageSize(deps.client, settings.pageSizes, signal));
    problem = await patience.ask(() => accountProblem(deps, signal));
  } catch (failure) {
    if (signal.aborted) throw signal.reason;
    if (failure instanceof AskedToWaitError) {
      const result = await refuse(failure.message, { resumeAfterMs: failure.retryAfterMs });
      if (result !== null) return { kind: "done", result };
    }
    if (failure instanceof ServiceError) await refuse(failure.message, {});
    throw failure;
  }
  if (problem !== null) {
    const result = await refuse(problem, { probed });
    if (result === null) throw new TallyhookError(problem);
    return { kind: "done", result };
  }
  const run = known ?? (await resumeOrStart(deps.db, settings, request, probed, before));
  await inTransaction(deps.db, async (trx) => {
    if (known !== null) await reopenRun(trx, known.id);
    await abandonOthers(trx, run.id);
    await takeOverRechecks(trx, run.id);
  });
  const end = await executeRun(deps, settings, run, { signal, patience, onProgress: tell }).then(
    (error) => ({ error }),
    async (failure: unknown) => {
      // An aborted run stays interrupted, to be resumed; a failed run is closed with its error.
      if (signal.aborted) throw signal.reason;
      const error = messageOf(failure);
      if (failure instanceof AskedToWaitError) return { error, resumeAfterMs: failure.retryAfterMs };
      await finishReconciliation(deps, run, probed.calls, { error });
      throw failure;
    },
  );
  return { kind: "done", result: await finishReconciliation(deps, run, probed.calls, end) };
}

interface Refused {
  problem: string;
  probed?: ProbeResult;
  resumeAfterMs?: number;
  before: BeforeRun | undefined;
}

/**
 * Records a run that read nothing, with the problem as its error: the service does not answer, or shows another
 * account. An interrupted run is left as it is, to be resumed later. A request with a key is recorded once, however
 * often it is tried; null where it already is.
 */
async function recordRefused(
  deps: ReconcileDeps,
  settings: ReconcileSettings,
  { kind, runKey, rangeFrom, rangeTo }: ReconcileRequest,
  { problem, probed, resumeAfterMs, before }: Refused,
): Promise<ReconcileResult | null> {
  const { reportOnly, graceMs, rotationNights } = settings;
  const date = probed?.date ?? deps.serviceClock.now();
  const refusedKey = `refused:${runKey ?? `${boundText(date)}:${crypto.randomUUID()}`}`;
  const run = await openRun(
    deps.db,
    {
      kind,
      runKey: refusedKey,
      t0: new Date(date.getTime() - graceMs),
      rangeFrom: rangeFrom ?? null,
      rangeTo: rangeTo ?? null,
      reportOnly,
      isInitialImport: false,
      pageSize: probed?.pageSize ?? null,
      rotationNights,
    },
    [],
    before,
  );
  if (run !== null) {
    const end = { error: problem, resumeAfterMs: resumeAfterMs ?? null };
    return finishReconciliation(deps, run, probed?.calls ?? 1, end);
  }
  if (resumeAfterMs !== undefined) {
    await inTransaction(deps.db, (trx) => putOffRun(trx, refusedKey, resumeAfterMs));
  }
  return null;
}

/** Does everything between plan and totals. Returns why the run cannot be complete, or null. */
async function executeRun(
  deps: ReconcileDeps,
  settings: ReconcileSettings,
  run: Run,
  { signal, patience, onProgress }: Steps & { patience: Patience },
): Promise<string | null> {
  const { db } = deps;
  const failedSince = new Date(run.t0.getTime() - settings.failedHorizonMs);
  const context: RecheckContext = {
    run: run.id,
    // No webhook of a first import can be missed, so there is no wait for one. A second 404 must still come a grace
    // later.
    graceMs: run.isInitialImport ? 0 : settings.graceMs,
    missingGraceMs: settings.graceMs,
    reportOnly: run.reportOnly,
    isInitialImport: run.isInitialImport,
    importedUntil: await importedUntil(db, run),
    cause: run.isInitialImport ? "import" : `reconcile:${run.id}`,
    limits: settings,
    signal,
    patience,
    onRechecks: (doubtful, waitMs) => onProgress({ ...progress, doubtful, waitMs }),
  };
  const progress = await walkAll(deps, context, {
    run,
    settings,
    failedSince,
    patience,
    onProgress,
  });
  await recheckUnread(deps, { run, failedSince });
  await runRechecks(deps, context);
  await inTransaction(db, (trx) => failIncompleteSlices(trx, run.id));
  const lateSince = new Date(run.t0.getTime() - settings.rotationNights * dayMs);
  await inTransaction(db, (trx) => correctLateCauses(trx, lateSince));
  const [absent, limit] = [await countAbsent(db, run.id), await absenceLimit(db, run.id, settings)];
  if (absent > limit) {
    await inTransaction(db, (trx) => discardAbsences(trx, run.id));
    return (
      `More than ${limit} objects of the mirror are unknown at the service. That suggests an API key of another ` +
      "account, so none was marked as deleted. Check SVC_API_KEY and SVC_BASE_URL, then run again."
    );
  }
  await inTransaction(db, (trx) => concludeAbsent(trx, context));
  if (await walksEverything(db, run.id)) {
    await recordEditedRows(db, { run: run.id, seenAt: deps.serviceClock.now() });
  }
  if (run.kind !== "range") await runChecks(deps, settings, run);
  const seenAt = deps.serviceClock.now();
  await inTransaction(db, (trx) => healCoveredFindings(trx, { run: run.id, seenAt }));
  return null;
}

/**
 * Checks the invariants and this deployment's endpoint, after the walk. Their findings are not drift. When the endpoint
 * cannot be checked, that is only logged: the run may still be complete.
 */
async function runChecks(
  { db, client, log, serviceClock, endpointProblems }: ReconcileDeps,
  { checks, timeZone }: Pick<ReconcileSettings, "checks" | "timeZone">,
  { id: run, t0 }: Pick<Run, "id" | "t0">,
): Promise<void> {
  if (checks === null) return;
  const moment = { now: serviceClock.now(), asOf: t0 };
  await checkInvariants(db, moment, { modes: checks.invariantModes, run, timeZone });
  try {
    const found = (await endpointProblems?.({ db, client })) ?? null;
    if (found !== null) await recordEndpointProblems(db, found, run);
  } catch (err) {
    if (!(err instanceof ServiceError)) throw err;
    log.warn({ err, run }, "the webhook endpoint could not be checked");
  }
}

const messageOf = (failure: unknown): string =>
  failure instanceof TallyhookError
    ? failure.message
    : "an unexpected error ended the run: see the log, then run again";
