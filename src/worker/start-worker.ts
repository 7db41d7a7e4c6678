import { takeRelayRows } from "../inbox/relay.ts";
import type { RelayLimits } from "../inbox/relay.ts";
import type { Clock } from "../platform/clock.ts";
import { QueueUnavailable } from "../queue/job-queue.ts";
import type { JobQueue } from "../queue/job-queue.ts";
import { applyBatch } from "./apply-batch.ts";
import type { ApplyDeps } from "./apply-batch.ts";
import { runEvery } from "../platform/every.ts";
import { fetchDueObjects } from "./fetch-objects.ts";
import type { FetchDeps } from "./fetch-deps.ts";
import { mergeBatches } from "./merge-batches.ts";
import { createTaskRunner } from "./task-runner.ts";
import type { ScheduledTask } from "./task-runner.ts";
import { walkDisputes } from "./walk-disputes.ts";

export interface WorkerDeps extends ApplyDeps, FetchDeps {
  /** Wall clock. */
  clock: Clock;
  queue: JobQueue;
}

export interface WorkerOptions {
  /** Batches at once. More than two only help where the database is far away. */
  concurrency: number;
  relayIntervalMs: number;
  relay?: RelayLimits;
  tasks?: Readonly<Record<string, ScheduledTask>>;
}

export const defaultWorkerOptions: WorkerOptions = { concurrency: 2, relayIntervalMs: 1_000 };

export interface RunningWorker {
  /** False when its timers have not come round for a minute: something hangs. */
  isAlive(): boolean;
  /** Takes no new work, finishes what is at work. */
  close(): Promise<void>;
}

const maxSeqsPerBatch = 500;
/** Taken at once, to be merged: what costs the queue is the job, whatever its size. */
const jobsAtOnce = 32;
/** A round that waits for the database to come back takes far less. */
const stalledAfterMs = 60_000;

/** Applies events, reads wanted objects, runs schedules, and brings back lost wake-ups. */
export function startWorker(
  deps: WorkerDeps,
  options: WorkerOptions = defaultWorkerOptions,
): RunningWorker {
  const { queue, log, clock } = deps;
  const tasks = options.tasks ?? {};
  const stopping = new AbortController();
  const runTask = createTaskRunner(tasks, stopping.signal);

  const apply = mergeBatches((seqs) => applyBatch(deps, seqs), {
    atOnce: options.concurrency,
    maxSeqs: maxSeqsPerBatch,
  });
  const fetches = runEvery({ log, clock, name: "fetches" }, 1_000, async () => ({
    more: (await fetchDueObjects(deps)) > 0,
  }));
  const disputes = runEvery({ log, clock, name: "disputes" }, 1_000, async () => ({
    more: (await walkDisputes(deps, stopping.signal)) > 0,
  }));
  const relay = runEvery({ log, clock, name: "relay" }, options.relayIntervalMs, async () => {
    await handOver(deps, await takeRelayRows(deps.db, options.relay));
    return { more: false };
  });
  // Made anew at each start, since one that is there may have lost its next job. Later on, one that has vanished is put
  // back, and so is one of an earlier start: its last job, at work just now, may have brought it back.
  const upserted = new Set<string>();
  const schedules = runEvery({ log, clock, name: "schedules" }, 10_000, async () => {
    for (const [task, { schedule }] of Object.entries(tasks)) {
      if (upserted.has(task) && (await queue.hasSchedule(task, schedule))) continue;
      await queue.upsertSchedule(task, schedule);
      upserted.add(task);
    }
    return { more: false };
  });
  const consumers = [
    queue.consume("apply", ({ seqs }) => apply(seqs), { concurrency: jobsAtOnce }),
    queue.consume("schedule", ({ task }) => runTask(task), {
      concurrency: Math.max(1, Object.keys(tasks).length),
    }),
  ];

  const startedAt = clock.now();
  return {
    isAlive() {
      const last = relay.lastRoundAt() ?? startedAt;
      return clock.now().getTime() - last.getTime() < stalledAfterMs;
    },
    async close() {
      stopping.abort(new Error("the worker stops"));
      const parts = [...consumers, relay, fetches, disputes, schedules];
      await Promise.all(parts.map((part) => part.close()));
    },
  };
}

/** The queue is how several workers share the work; while it is away, whoever found the rows applies them. */
async function handOver(deps: WorkerDeps, seqs: readonly number[]): Promise<void> {
  let isQueueAway = false;
  for (let at = 0; at < seqs.length; at += maxSeqsPerBatch) {
    const batch = seqs.slice(at, at + maxSeqsPerBatch);
    isQueueAway ||= !(await isAdded(deps, batch));
    if (isQueueAway) await applyBatch(deps, batch);
  }
}

async function isAdded({ queue }: WorkerDeps, seqs: number[]): Promise<boolean> {
  try {
    await queue.add("apply", { seqs });
    return true;
  } catch (error) {
    if (!(error instanceof QueueUnavailable)) throw error;
    return false;
  }
}
