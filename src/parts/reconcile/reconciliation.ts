import { lastDue } from "../../platform/cron.ts";
import { type ReconcileDeps, type ReconcileOptions, reconcile } from "./reconcile.ts";
import type { ServiceLocation } from "../../app/answers.ts";
import { hourly } from "../../app/hourly.ts";
import { listenerOf, type Runtime } from "../../app/runtime.ts";
import { TallyhookError } from "../../platform/errors.ts";
import { databaseNow } from "../../platform/postgres/database-clock.ts";
import { forgetRechecks } from "./recheck/rechecks.ts";
import { type ReconcileResult, sum } from "./runs/finish-run.ts";
import { lastFullAnswerStart, lastPutOff, nightlyKey, resumableNightlyKey } from "./runs/runs.ts";
import { type ReconcileSettings, defaultReconcileSettings } from "./settings.ts";
import type { ScheduledTask } from "../../core/worker/scheduled-tasks.ts";

const catchUpEveryMs = 15 * 60_000;
const catchUpWithinMs = 8 * 24 * 3_600_000;

/**
 * The nightly run, the removal of what it need not keep, and the check for one that was missed while no worker ran. The run's key and a lock keep it to one
 * run, however many workers start the task. If a worker ends in the middle, the next check resumes the run.
 */
export async function reconcileTasks(
  runtime: Runtime,
  service?: ServiceLocation,
): Promise<Record<string, ScheduledTask>> {
  const { config, log, wallClock } = runtime;
  const { cron } = config.reconcile;
  const { timeZone } = config;
  const deps = await reconcileDeps(runtime, service);

  async function run(runKey: string, stopping: AbortSignal): Promise<void> {
    try {
      const request = { kind: "nightly", runKey } as const;
      const outcome = await reconcile(deps, reconcileSettings(runtime), request, {
        signal: stopping,
      });
      if (outcome.kind === "done") logResult(outcome.result);
    } catch (err) {
      if (stopping.aborted) return;
      log.error({ err, runKey }, "the nightly run failed");
    }
  }

  function logResult({ run: { id, runKey }, totals, complete, error }: ReconcileResult): void {
    const [healed, left] = [sum(totals.healed), sum(totals.left)];
    const level = complete && left === 0 ? "info" : "error";
    const text = complete ? "the nightly run is done" : "the nightly run is INCOMPLETE";
    log[level]({ run: id, runKey, healed, left, calls: totals.calls, error }, text);
  }

  const lastNight = () => lastDue(cron, { timeZone, now: wallClock.now(), withinMs: catchUpWithinMs });
  return {
    reconcile: {
      schedule: { cron, timeZone },
      run: (stopping) => run(nightlyKey(lastNight() ?? wallClock.now(), timeZone), stopping),
    },
    "reconcile-catch-up": {
      schedule: { everyMs: catchUpEveryMs },
      async run(stopping) {
        const due = lastNight();
        const last = await lastFullAnswerStart(deps.db);
        // A deployment that never reconciled starts with its first scheduled run, or with `import`. Where the service put
        // that off, it is taken up again.
        const isMissed = due !== null && (last === null ? (await lastPutOff(deps.db)) !== null : last < due);
        if (isMissed) return run(nightlyKey(due, timeZone), stopping);
        const interrupted = await resumableNightlyKey(deps.db);
        if (interrupted !== null) await run(interrupted, stopping);
      },
    },
    "reconcile-retention": retentionTask({ db: deps.db, log }),
  };
}

/** Removes rechecks that need not be kept. */
export const retentionTask = (
  { db, log }: Pick<ReconcileDeps, "db" | "log">,
  readNow: (db: ReconcileDeps["db"]) => Promise<Date> = databaseNow,
): ScheduledTask =>
  hourly(async (stopping) => {
    const rechecks = await forgetRechecks(db, { now: await readNow(db), stopping });
    log.info({ rechecks }, "old rechecks are removed");
  });

/** The dependencies of reconciliation. The database must be migrated. */
export async function reconcileDeps(runtime: Runtime, service?: ServiceLocation): Promise<ReconcileDeps> {
  const { endpointProblems } = runtime.ask;
  return {
    db: await runtime.db(),
    client: runtime.serviceClient(service),
    log: runtime.log,
    random: runtime.random,
    clock: runtime.wallClock,
    serviceClock: runtime.serviceClock,
    listener: await listenerOf(runtime),
    ...(endpointProblems === undefined ? {} : { endpointProblems }),
  };
}

export const reconcileSettings = ({ config }: Pick<Runtime, "config">): ReconcileSettings => ({
  ...defaultReconcileSettings,
  graceMs: config.reconcile.graceSeconds * 1_000,
  reportOnly: config.reconcile.reportOnly,
  timeZone: config.timeZone,
  checks: {
    invariantModes: config.reconcile.identities,
  },
});

/** A full run without a grace, for a service whose clock stands still: no event is in flight. Throws the signal's reason. */
export async function healEverything(
  runtime: Runtime,
  service: ServiceLocation,
  options: ReconcileOptions,
): Promise<{ healed: number; left: number; complete: boolean }> {
  const settings = { ...defaultReconcileSettings, graceMs: 0 };
  const outcome = await reconcile(await reconcileDeps(runtime, service), settings, { kind: "full" }, options);
  if (outcome.kind !== "done") throw new TallyhookError(`The run was ${outcome.kind}.`);
  const { totals, complete } = outcome.result;
  return { healed: sum(totals.healed), left: sum(totals.left), complete };
}
