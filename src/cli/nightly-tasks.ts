import { lastDue } from "../platform/cron-due.ts";
import { interruptedNight, nightlyKey } from "../reconcile/nightly.ts";
import { lastWholeRun } from "../reconcile/queries/last-whole-run.ts";
import { reconcile } from "../reconcile/reconcile.ts";
import type { ReconcileResult } from "../reconcile/finish.ts";
import { sum } from "../reconcile/totals.ts";
import type { Runtime } from "../runtime.ts";
import type { ScheduledTask } from "../worker/task-runner.ts";
import { reconcileDeps, reconcileSettings } from "./run-reconcile.ts";

const catchUpEveryMs = 15 * 60_000;
const catchUpWithinMs = 8 * 24 * 3_600_000;

/**
 * The nightly run, and the check that none was missed while no worker ran. However many workers and schedulers fire,
 * the key of the night and the lock make it one run; a worker that ends leaves the rest to the next check.
 */
export async function nightlyTasks(
  runtime: Runtime,
  service?: { baseUrl: string; apiKey: string },
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
      log.error({ err, runKey }, "the nightly reconciliation failed");
    }
  }

  function logResult({ run: { id, runKey }, totals, complete, error }: ReconcileResult): void {
    const [healed, left] = [sum(totals.healed), sum(totals.left)];
    const level = complete && left === 0 ? "info" : "error";
    const text = complete
      ? "the nightly reconciliation is done"
      : "the nightly reconciliation is INCOMPLETE";
    log[level]({ run: id, runKey, healed, left, calls: totals.calls, error }, text);
  }

  const lastNight = () =>
    lastDue(cron, { timeZone, now: wallClock.now(), withinMs: catchUpWithinMs });
  return {
    reconcile: {
      schedule: { cron, timeZone },
      run: (stopping) => run(nightlyKey(lastNight() ?? wallClock.now(), timeZone), stopping),
    },
    "reconcile-catch-up": {
      schedule: { everyMs: catchUpEveryMs },
      async run(stopping) {
        const due = lastNight();
        const last = await lastWholeRun(deps.db);
        // A deployment that never reconciled begins with its first night, or with `import`.
        const isMissed = due !== null && last !== null && last < due;
        if (isMissed) return run(nightlyKey(due, timeZone), stopping);
        const interrupted = await interruptedNight(deps.db);
        if (interrupted !== null) await run(interrupted, stopping);
      },
    },
  };
}
