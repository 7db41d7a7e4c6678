import { type RelayLimits, findOverdue } from "../inbox/backlog.ts";
import { runEvery } from "../../platform/run-every.ts";
import type { JobQueue } from "../queue/job-queue.ts";
import { type ApplyDeps, applyBatch } from "./apply-batch.ts";
import { createApplyLoop } from "./apply-loop.ts";
import { type RefetchDeps, refetchDueObjects } from "./refetch.ts";
import { type ScheduledTask, runScheduledTasks } from "./scheduled-tasks.ts";
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
export function startWorker(deps: WorkerDeps, options: WorkerOptions = defaultWorkerOptions): RunningWorker {
  const { queue, log } = deps;
  const tasks = options.tasks ?? {};
  const stopping = new AbortController();

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
  const schedules = runScheduledTasks(deps, tasks);
  const wakeUps = queue.consume(() => events.wake());

  events.sweep();

  const stalledAfterMs = options.stalledAfterMs ?? defaultStallLimits;
  return {
    isAlive: () =>
      [relay, schedules].every((loop) => loop.sinceProgressMs() < stalledAfterMs.statements) &&
      [events, fetches, disputes].every((loop) => loop.sinceProgressMs() < stalledAfterMs.reads),
    async close() {
      stopping.abort(new Error("the worker is stopping"));
      const parts = [wakeUps, relay, events, fetches, disputes, schedules];
      await Promise.all(parts.map((part) => part.close()));
    },
  };
}
