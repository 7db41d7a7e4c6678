import { beat, leave, schedulerBeat } from "../../alerts/heartbeats.ts";
import { sweepAlerts } from "../../alerts/sweep.ts";
import { runEvery } from "../../platform/every.ts";
import type { Runtime } from "../../runtime.ts";
import type { ScheduledTask } from "../../worker/task-runner.ts";
import { alertDesk } from "./alert-desk.ts";

const sweepEveryMs = 30_000;
const beatEveryMs = 60_000;

/**
 * Watches for what no event tells of, until the runtime ends. By a timer of each worker, as the relay does: a scheduler
 * that stands still is one of the things it looks for.
 */
export async function runAlertWatch(runtime: Runtime): Promise<void> {
  const { log } = runtime;
  const db = await runtime.db();
  const desk = await alertDesk(runtime);
  const name = `worker:${process.pid}:${crypto.randomUUID()}`;
  const watch = runEvery({ log, name: "alerts" }, sweepEveryMs, async () => {
    await beat(db, name);
    return sweepAlerts({ db, log }, desk);
  });
  runtime.onClose(async () => {
    await watch.close();
    await leave(db, name);
  });
}

/** By which the sweep knows that schedules are started. */
export async function schedulerBeatTask(
  runtime: Runtime,
): Promise<Record<"scheduler-beat", ScheduledTask>> {
  const db = await runtime.db();
  return {
    "scheduler-beat": {
      schedule: { everyMs: beatEveryMs },
      run: () => beat(db, schedulerBeat),
    },
  };
}
