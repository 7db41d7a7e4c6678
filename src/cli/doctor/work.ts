import { readHeartbeats } from "../../alerts/heartbeats.ts";
import type { Heartbeats } from "../../alerts/heartbeats.ts";
import { counted } from "../../platform/counted.ts";
import type { Runtime } from "../../runtime.ts";
import { failed, ok, skipped, warning } from "./finding.ts";
import type { Finding } from "./finding.ts";

/** A worker beats every 30 s, the scheduler every minute; a slow sweep or a busy queue may put one off. */
const lateAfterSeconds = { worker: 120, scheduler: 300 };

/** Whether somebody applies what arrives, and whether anything that runs by the clock is started. */
export async function checkWork(runtime: Pick<Runtime, "db">): Promise<Finding[]> {
  const beats = await readHeartbeats(await runtime.db());
  return [workers(beats), scheduler(beats)];
}

function workers({ workerAgesSeconds: ages }: Heartbeats): Finding {
  const alive = ages.filter((age) => age <= lateAfterSeconds.worker).length;
  const [newestMissing] = ages.filter((age) => age > lateAfterSeconds.worker);
  if (alive === 0) {
    const last =
      newestMissing === undefined ? "" : `; the last one was heard ${ago(newestMissing)}`;
    return failed(
      "worker",
      `none runs, so what arrives is stored and not applied, and nobody is alerted${last}`,
      'start one: "npx tallyhook worker" (or "npx tallyhook start" for everything at once)',
    );
  }
  const run = counted(alive, "worker runs", "workers run");
  return newestMissing === undefined
    ? ok("worker", run)
    : warning(
        "worker",
        `${run}; ${counted(ages.length - alive, "has", "have")} stopped without a word, the last ${ago(newestMissing)}`,
        "look at its log; where it was killed on purpose, this goes away after an hour",
      );
}

function scheduler({ workerAgesSeconds, schedulerAgeSeconds: age }: Heartbeats): Finding {
  if (!workerAgesSeconds.some((each) => each <= lateAfterSeconds.worker)) {
    return skipped("scheduler", "no worker runs");
  }
  if (age !== null && age <= lateAfterSeconds.scheduler) {
    return ok("scheduler", `ran a task ${ago(age)}`);
  }
  const lacks = "so there is no nightly run and no report by mail";
  return failed(
    "scheduler",
    age === null
      ? `has never run a task, ${lacks}`
      : `ran its last task ${ago(age)} and should every minute, ${lacks}`,
    "where a worker has started within the last minute, run this again; else look at the workers' log for the queue, and restart them",
  );
}

function ago(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s ago`;
  return seconds < 7_200
    ? `${Math.round(seconds / 60)} minutes ago`
    : `${Math.round(seconds / 3_600)} hours ago`;
}
