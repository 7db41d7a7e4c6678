import type { Command } from "commander";
import pc from "picocolors";
import { tallyhook } from "../../../platform/command-line.ts";
import { TallyhookError, UsageError, exitCodes } from "../../../platform/errors.ts";
import { moneyText } from "../../../platform/money.ts";
import { counted } from "../../../platform/readable-text.ts";
import type { Gap } from "../coverage/coverage.ts";
import { type EstimatedSlice, answeredRange, estimatePlan, makePlan } from "../plan.ts";
import { type ReconcileOutcome, type ReconcileRequest, reconcile } from "../reconcile.ts";
import { type ReconcileResult, amountsAsText, sum } from "../runs/finish-run.ts";
import type { LeaseHolder } from "../runs/run-lease.ts";
import { probePageSize } from "../runs/start-run.ts";
import { reconcileDeps, reconcileSettings } from "../reconciliation.ts";
import type { Runtime } from "../../../app/runtime.ts";
import { parserOf, withDatabase } from "../../../app/cli/command.ts";
import { instant } from "../../../app/people/fields.ts";
import type { CliContext } from "../../../app/cli/context.ts";
import { type Columns, cellsText, tableText } from "../../../app/cli/table.ts";
import { createReconcileProgress } from "./walk-progress.ts";
import { untilSignal } from "../../../app/cli/until-signal.ts";

interface Options {
  full?: boolean;
  from?: Date;
  to?: Date;
  dryRun?: boolean;
  reportOnly?: boolean;
  failOnDrift?: boolean;
  strict?: boolean;
  json?: boolean;
}

export function registerReconcile(program: Command, context: CliContext): void {
  program
    .command("reconcile")
    .option("--full", "read everything from the first record on, instead of the nightly plan")
    .option(
      "--from <time>",
      "read only what was created from this time on, such as 2026-10-01T00:00:00Z",
      parserOf(instant),
    )
    .option("--to <time>", "read only what was created before this time", parserOf(instant))
    .option("--dry-run", "only print the plan with its estimated calls")
    .option("--report-only", "record findings, but do not change the mirror")
    .option("--fail-on-drift", "exit 5 if something had to be healed")
    .option("--strict", "exit 3 also for other open findings (broken invariants, the endpoint)")
    .option("--json", "print one JSON object")
    .action((options: Options) => run(context, requestOf(options), options));
  program
    .command("import")
    .option("--json", "print one JSON object")
    .action((options: Options) => run(context, { kind: "import" }, options));
}

function requestOf({ full, from, to }: Options): ReconcileRequest {
  if (full === true) {
    if (from !== undefined || to !== undefined) throw new UsageError("Use either --full, or --from and --to.");
    return { kind: "full" };
  }
  if (from === undefined && to === undefined) return { kind: "nightly" };
  if (from !== undefined && to !== undefined && from >= to) throw new UsageError("--from must be before --to.");
  return {
    kind: "range",
    ...(from === undefined ? {} : { rangeFrom: from }),
    ...(to === undefined ? {} : { rangeTo: to }),
  };
}

async function run(context: CliContext, request: ReconcileRequest, options: Options): Promise<void> {
  await withDatabase(context, "reconcile", async ({ runtime }) => {
    if (options.dryRun === true) return printPlan(context, runtime, request, options);
    const outcome = await reconcileUntilSignal(context, runtime, request, options);
    report(context, outcome, options);
  });
}

/** A person stopped the run. Its results are kept. */
class StoppedRunError extends TallyhookError {
  override readonly exitCode = exitCodes.incomplete;

  constructor(signal: NodeJS.Signals) {
    super(`Stopped by ${signal}. Nothing is lost: the same command resumes the run.`);
  }
}

/** Another run is in progress, so nothing was read. */
class BusyError extends TallyhookError {
  override readonly exitCode = exitCodes.incomplete;
}

async function reconcileUntilSignal(
  context: CliContext,
  runtime: Runtime,
  request: ReconcileRequest,
  { reportOnly, json }: Options,
): Promise<ReconcileOutcome> {
  const stop = new AbortController();
  void untilSignal().then((signal) => stop.abort(new StoppedRunError(signal)));
  const settings = reconcileSettings(runtime);
  const progress = createReconcileProgress(context.stderr, {
    clock: runtime.wallClock,
    timeZone: settings.timeZone,
    isQuiet: json === true,
  });
  try {
    return await reconcile(
      await reconcileDeps(runtime),
      { ...settings, reportOnly: reportOnly ?? settings.reportOnly },
      request,
      { signal: stop.signal, onProgress: progress.update },
    );
  } finally {
    progress.stop();
  }
}

function report({ stdout, stderr }: CliContext, outcome: ReconcileOutcome, options: Options): void {
  if (outcome.kind === "busy") {
    throw new BusyError(busyText(outcome.holder));
  }
  if (outcome.kind === "put_off") {
    throw new BusyError(`The service asks for no requests until ${outcome.until.toISOString()}.`);
  }
  if (outcome.kind === "repeated") {
    stdout.write(`The run ${outcome.runKey} was done already.\n`);
    return;
  }
  if (options.json === true) stdout.write(`${JSON.stringify(resultJson(outcome.result))}\n`);
  else printResult(stdout, outcome.result);
  const asked = { failOnDrift: options.failOnDrift === true, strict: options.strict === true };
  const reason = exitReason(outcome.result, asked);
  if (reason !== null) stderr.write(`tallyhook: ${reason}\n`);
  process.exitCode = exitCodeOf(outcome.result, asked);
}

/** The process that is reconciling, since when and until when. */
export function busyText({ isOver, since, until, ...holder }: LeaseHolder): string {
  const who = `Another process is reconciling this database: process ${holder.pid} on ${holder.host}`;
  return isOver
    ? `${who}. Its lease has ended, but its last transaction has not. Run the same command again in a minute.`
    : `${who}, since ${since.toISOString()}. It holds the lease until ${until?.toISOString()} and renews it while it ` +
        "works. Only one run can work at a time: wait until it ends; table reconcile.runs shows it.";
}

/** Prints the reads of a run and its estimated calls. Calls the service only for its page size. Changes nothing. */
export async function printPlan(
  { stdout }: Pick<CliContext, "stdout">,
  runtime: Runtime,
  {
    kind,
    rangeFrom = null,
    rangeTo = null,
  }: { kind: ReconcileRequest["kind"]; rangeFrom?: Date | null; rangeTo?: Date | null },
  { json }: { json?: boolean },
): Promise<void> {
  const { db, client } = await reconcileDeps(runtime);
  const settings = reconcileSettings(runtime);
  const { pageSize, date } = await probePageSize(client, settings.pageSizes, AbortSignal.timeout(60_000));
  const t0 = new Date(date.getTime() - settings.graceMs);
  const slices = await makePlan(db, settings, { kind, t0, rangeFrom, rangeTo });
  const plan = await estimatePlan(db, slices, pageSize);
  const calls = plan.reduce((sum, slice) => sum + slice.calls, 0);
  if (json === true) {
    const shown = { t0, page_size: pageSize, estimated_calls: calls, slices: plan.map(sliceJson) };
    stdout.write(`${JSON.stringify(shown)}\n`);
    return;
  }
  stdout.write(
    `${tableText(planColumns, plan)}Pages of ${pageSize}: about ${counted(calls, "call")}, estimated from what the ` +
      "mirror holds now. Open items and objects that differ are also read by id. Nothing was changed.\n",
  );
}

const planColumns: Columns<EstimatedSlice> = {
  step: ({ slice }) => slice.step,
  list: ({ slice }) => slice.path,
  filter: ({ slice }) => Object.entries(slice.filter).map(([name, value]) => `${name}=${value}`),
  "created from": ({ slice }) => shortTime(slice.createdFrom) ?? "first record",
  before: ({ slice }) => shortTime(slice.createdBefore),
  rows: ({ rows }) => rows,
  calls: ({ calls }) => calls,
  why: ({ slice }) => slice.reason,
};

const sliceJson = ({ slice, rows, calls }: EstimatedSlice) => ({
  step: slice.step,
  resource: slice.resource,
  path: slice.path,
  filter: slice.filter,
  direction: slice.direction,
  created_from: slice.createdFrom,
  created_before: slice.createdBefore,
  reason: slice.reason,
  rows,
  calls,
});

const shortTime = (time: string | null): string | null => time?.replace(/\.000000Z$/, "Z") ?? null;

/** The exit code of a run. An incomplete run is reported first: slices that were not read may hide drift. */
export function exitCodeOf(
  { complete, totals }: Pick<ReconcileResult, "complete" | "totals">,
  { failOnDrift, strict }: { failOnDrift: boolean; strict: boolean },
): number {
  if (!complete) return exitCodes.incomplete;
  if (sum(totals.left) > 0) return exitCodes.differs;
  if (strict && sum(totals.otherFindings) > 0) return exitCodes.differs;
  return failOnDrift && sum(totals.healed) > 0 ? exitCodes.healed : exitCodes.done;
}

/**
 * The reason for an exit code other than 0 although the run's last line reports that all is equal. Null if that line
 * gives the reason.
 */
export function exitReason(
  result: Pick<ReconcileResult, "complete" | "totals">,
  options: { failOnDrift: boolean; strict: boolean },
): string | null {
  const { left, otherFindings, healed } = result.totals;
  const code = exitCodeOf(result, options);
  if (code === exitCodes.differs && sum(left) === 0) {
    const open = counted(sum(otherFindings), "open finding that is no drift", "open findings that are no drift");
    return (
      `exit code 3, because --strict counts ${open} (${listed(otherFindings)}). "${tallyhook("findings list")}" ` +
      "shows them."
    );
  }
  return code === exitCodes.healed
    ? `exit code 5, because --fail-on-drift counts what was healed (${listed(healed)}).`
    : null;
}

/** One JSON object for scripts. Money is minor units as text, as in the reports' JSON. */
export const resultJson = ({ run, totals, coverage, complete, error, resumeAfter }: ReconcileResult) => ({
  run: run.id,
  run_key: run.runKey,
  kind: run.kind,
  t0: run.t0,
  report_only: run.reportOnly,
  complete,
  error,
  resume_after: resumeAfter,
  checked: sum(totals.rows),
  rows: totals.rows,
  verdicts: totals.verdicts,
  confirmed: totals.confirmed,
  healed: sum(totals.healed),
  healed_by_class: totals.healed,
  left: sum(totals.left),
  left_by_class: totals.left,
  amount_at_risk_minor: amountsAsText(totals.amountAtRiskMinor),
  acknowledged: sum(totals.acknowledged),
  other_findings: totals.otherFindings,
  coverage: { complete: coverage.complete, gaps: coverage.gaps, slices: totals.slices },
  calls: totals.calls,
});

export function printResult(out: NodeJS.WriteStream, result: ReconcileResult): void {
  const { run, totals, coverage, complete, error, resumeAfter } = result;
  const { slices, verdicts } = totals;
  const rows = [
    ["run", `${run.id} (${run.kind}${run.reportOnly ? ", report only" : ""})`],
    scopeRow(run),
    ["read", `${listed(totals.rows)}; ${counted(totals.calls, "call")}`],
    ["compared", listed(verdicts)],
    ["rechecked by id", listed(totals.confirmed)],
    ["healed", listed(totals.healed)],
    ["drift left", leftText(totals)],
    ["other open findings", listed(totals.otherFindings)],
    ["slices", listed(slices)],
    ["coverage", coverage.complete ? "complete" : coverage.gaps.map(gapText)],
  ];
  out.write(cellsText({ head: [], rows }));
  if (error !== null) out.write(pc.red(`${error}\n`));
  if (resumeAfter !== null) out.write(pc.red(`The service may be asked again at ${resumeAfter.toISOString()}.\n`));
  out.write(verdictText(result, complete));
}

function scopeRow(run: ReconcileResult["run"]): [string, string] {
  if (run.kind !== "range") return ["everything created before", run.t0.toISOString()];
  const { from, before } = answeredRange(run);
  return ["created", `from ${from.toISOString()}, before ${before.toISOString()}`];
}

function verdictText({ run, totals }: ReconcileResult, complete: boolean): string {
  const [left, healed] = [sum(totals.left), sum(totals.healed)];
  if (!complete)
    return pc.red("INCOMPLETE: not everything was read and proved, so the mirror as a whole is not proved.\n");
  if (left > 0) {
    const differ = counted(left, "object differs", "objects differ");
    return pc.red(`DRIFT LEFT: ${differ} from the service.\n`);
  }
  const scope = run.kind === "range" ? "What was created in the range" : "The mirror";
  const accepted = sum(totals.acknowledged);
  return pc.green(
    `${scope} equals the service` +
      (accepted > 0 ? `, except for what was acknowledged (findings: ${accepted})` : "") +
      (healed > 0 ? `; healed: ${counted(healed, "difference")}.\n` : ".\n"),
  );
}

function leftText({ left, amountAtRiskMinor }: ReconcileResult["totals"]): string {
  if (sum(left) === 0) return "0";
  const amounts = Object.entries(amountAtRiskMinor).map(([currency, minor]) => moneyText(minor, currency));
  return `${listed(left)}; at risk: ${amounts.join(", ") || "no amount"}`;
}

const listed = (counts: Readonly<Record<string, number | undefined>>): string => {
  const parts = Object.entries(counts).filter(([, n]) => (n ?? 0) > 0);
  return parts.length === 0 ? "0" : parts.map(([name, n]) => `${name} ${n}`).join(", ");
};

const gapText = ({ resource, from, before }: Gap): string =>
  `${resource}s created ${from === null ? "" : `from ${from} `}before ${before ?? "now"} are not proved`;
