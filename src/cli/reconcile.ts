import type { Command } from "commander";
import { exitCodes, TallyhookError, UsageError } from "../platform/errors.ts";
import { reconcile } from "../reconcile/reconcile.ts";
import type { ReconcileOutcome, ReconcileRequest } from "../reconcile/reconcile.ts";
import { migratedDatabase } from "../runtime.ts";
import type { Runtime } from "../runtime.ts";
import type { CliContext } from "./context.ts";
import { parseInstant } from "./instant.ts";
import { exitCodeOf, exitReason, printResult, resultJson } from "./reconcile-output.ts";
import { printPlan } from "./reconcile-plan.ts";
import { createReconcileProgress } from "./reconcile-progress.ts";
import { reconcileDeps, reconcileSettings } from "./run-reconcile.ts";
import { untilSignal } from "./until-signal.ts";

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
    .description(
      "make the mirror equal to the service now; exit 0 equal (also when it healed), 3 drift left, 4 incomplete, " +
        "5 healed (with --fail-on-drift)",
    )
    .option("--full", "everything from the first record on, instead of the nightly plan")
    .option(
      "--from <time>",
      "only what was created from then on, such as 2026-10-01T00:00:00Z",
      parseInstant,
    )
    .option("--to <time>", "only what was created before then", parseInstant)
    .option("--dry-run", "print the plan with its estimated calls, read nothing else")
    .option("--report-only", "find and record, and change nothing in the mirror")
    .option("--fail-on-drift", "exit 5 when something had to be healed")
    .option("--strict", "exit 3 also for open findings that are no drift (identities, endpoint)")
    .option("--json", "print one JSON object")
    .action((options: Options) => run(context, requestOf(options), options));
  program
    .command("import")
    .description("fill an empty mirror from the service; goes on where it was interrupted")
    .option("--json", "print one JSON object")
    .action((options: Options) => run(context, { kind: "import" }, options));
}

function requestOf({ full, from, to }: Options): ReconcileRequest {
  if (full === true) {
    if (from !== undefined || to !== undefined)
      throw new UsageError("Say either --full, or --from and --to.");
    return { kind: "full" };
  }
  if (from === undefined && to === undefined) return { kind: "nightly" };
  if (from !== undefined && to !== undefined && from >= to)
    throw new UsageError("--from must be before --to.");
  return {
    kind: "range",
    ...(from === undefined ? {} : { rangeFrom: from }),
    ...(to === undefined ? {} : { rangeTo: to }),
  };
}

async function run(
  context: CliContext,
  request: ReconcileRequest,
  options: Options,
): Promise<void> {
  await context.withRuntime(
    "reconcile",
    async (runtime) => {
      await migratedDatabase(runtime);
      if (options.dryRun === true) return printPlan(context, runtime, request, options);
      const outcome = await reconcileUntilSignal(context, runtime, request, options);
      report(context, outcome, options);
    },
    { logLevel: "warn" },
  );
}

/** Somebody ended a run. What it did is kept. */
class StoppedRun extends TallyhookError {
  override readonly exitCode = exitCodes.incomplete;

  constructor(signal: NodeJS.Signals) {
    super(`Stopped by ${signal}. Nothing is lost: the same command goes on where this one was.`);
  }
}

/** Nothing was read. */
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
  void untilSignal().then((signal) => stop.abort(new StoppedRun(signal)));
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
    throw new BusyError(
      "Another process reconciles this database. One run at a time: wait for it, or look at reconcile.runs.",
    );
  }
  if (outcome.kind === "repeated") {
    stdout.write(`The run ${outcome.runKey} was made already.\n`);
    return;
  }
  if (options.json === true) stdout.write(`${JSON.stringify(resultJson(outcome.result))}\n`);
  else printResult(stdout, outcome.result);
  const asked = { failOnDrift: options.failOnDrift === true, strict: options.strict === true };
  const reason = exitReason(outcome.result, asked);
  if (reason !== null) stderr.write(`tallyhook: ${reason}\n`);
  process.exitCode = exitCodeOf(outcome.result, asked);
}
