import { type RelayLimits, findOverdue } from "../inbox/relay.ts";
import { runEvery } from "../platform/run-every.ts";
import type { JobQueue, Schedule } from "../queue/job-queue.ts";
import { type ApplyDeps, applyBatch } from "./apply-batch.ts";
import { createApplyLoop } from "./apply-loop.ts";
import { type RefetchDeps, refetchDueObjects } from "./refetch.ts";
import { walkDisputes } from "./walk-disputes.ts";

export interface WorkerDeps extends ApplyDeps, RefetchDeps {
  queue: JobQueue;
}

export interface WorkerOptions {
  /** Batches applied at the same time. More than two only help when the database is far away. */
  concurrency: number;
  relayIntervalMs: number;
  relay?: RelayLimits;
  stalledAfterMs?: StallLimits;
  tasks?: Readonly<Record<string, ScheduledTask>>;
}

export const defaultWorkerOptions: WorkerOptions = { concurrency: 2, relayIntervalMs: 1_000 };

/** How long a loop may make no progress before it counts as hung, in milliseconds. */
export interface StallLimits {
  /**
   * Loops that do not call the service: relay and schedules. A round fails far sooner when the database is down.
   */
  statements: number;
  /**
   * Events: a batch that is halved again and again. Loops that read from the service: one read with all its retries, and
   * applying its answer.
   */
  reads: number;
}

const defaultStallLimits: StallLimits = { statements: 60_000, reads: 300_000 };

export interface RunningWorker {
  /**
   * False when one of its loops has made no progress for too long, so something hangs. Clock changes do not affect it.
   */
  isAlive(): boolean;
  /** Takes no new work and finishes the work in progress. */
  close(): Promise<void>;
}

/** Starts a worker: it applies events, also those that the queue lost, makes refetches and runs scheduled tasks. */
export function startWorker(
  deps: WorkerDeps,
  options: WorkerOptions = defaultWorkerOptions,
): RunningWorker {
  const { queue, log } = deps;
  const tasks = options.tasks ?? {};
  const stopping = new AbortController();
  const runTask = createTaskRunner(tasks, stopping.signal);

  const events = createApplyLoop(deps, { atOnce: options.concurrency });
  const fetches = runEvery({ log, name: "fetches" }, 1_000, async () => ({
    more: (await refetchDueObjects(deps)) > 0,
  }));
  const disputes = runEvery({ log, name: "disputes" }, 1_000, async (reportProgress) => ({
    more: (await walkDisputes(deps, stopping.signal, reportProgress)) > 0,
  }));
  const relay = runEvery({ log, name: "relay" }, options.relayIntervalMs, async () => {
    const { isLate, due } = await findOverdue(deps.db, options.relay);
    if (isLate) events.sweep();
    await applyBatch(deps, due);
    return { more: false };
  });
  // Each start upserts all schedules, since an existing one may have lost its next job. After that, a schedule is
  // upserted when it is gone or is the former one: a job of the former schedule, still running at the start, may have
  // put that back.
  const upserted = new Set<string>();
  const schedules = runEvery({ log, name: "schedules" }, 10_000, async () => {
    for (const [task, { schedule }] of Object.entries(tasks)) {
      if (upserted.has(task) && (await queue.hasSchedule(task, schedule))) continue;
      await queue.upsertSchedule(task, schedule);
      upserted.add(task);
    }
    return { more: false };
  });
  const consumers = [
    queue.consume("apply", async () => events.wake(), { concurrency: 1 }),
    queue.consume("schedule", ({ task }) => runTask(task), {
      concurrency: Math.max(1, Object.keys(tasks).length),
    }),
  ];

  events.sweep();

  const stalledAfterMs = options.stalledAfterMs ?? defaultStallLimits;
  return {
    isAlive: () =>
      [relay, schedules].every((loop) => loop.sinceProgressMs() < stalledAfterMs.statements) &&
      [events, fetches, disputes].every((loop) => loop.sinceProgressMs() < stalledAfterMs.reads),
    async close() {
      stopping.abort(new Error("the worker is stopping"));
      const parts = [...consumers, relay, events, fetches, disputes, schedules];
      await Promise.all(parts.map((part) => part.close()));
    },
  };
}

/**
 * A task that runs on a schedule, usually on one worker at a time; overlapping runs must do no harm. `stopping` is
 * aborted when the worker stops; the worker then waits some seconds for the task.
 */
export interface ScheduledTask {
  schedule: Schedule;
  run(stopping: AbortSignal): Promise<void>;
}

/**
 * Returns a function that runs a task by its name. It skips a task that is still running here, since its schedule keeps
 * firing. It also skips an unknown name: a removed task may still have its schedule in the queue.
 */
function createTaskRunner(
  tasks: Readonly<Record<string, ScheduledTask>>,
  stopping: AbortSignal,
): (name: string) => Promise<void> {
  const running = new Set<string>();
  return async (name) => {
    const task = Object.hasOwn(tasks, name) ? tasks[name] : undefined;
    if (task === undefined || running.has(name) || stopping.aborted) return;
    running.add(name);
    try {
      await task.run(stopping);
    } finally {
      running.delete(name);
    }
  };
}
