import { takeRelayRows } from "../inbox/relay.ts";
import type { RelayLimits } from "../inbox/relay.ts";
import type { Clock } from "../platform/clock.ts";
import type { JobQueue, Schedule } from "../queue/job-queue.ts";
import { applyBatch } from "./apply-batch.ts";
import type { ApplyDeps } from "./apply-batch.ts";
import { runEvery } from "./every.ts";
import { fetchDueObjects } from "./fetch-objects.ts";
import type { FetchDeps } from "./fetch-objects.ts";

/** Something that runs on a schedule, on one worker at a time. */
export interface ScheduledTask {
  schedule: Schedule;
  run(): Promise<void>;
}

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
/** A round that waits for the database to come back takes far less. */
const stalledAfterMs = 60_000;

/** Applies events, reads wanted objects, runs schedules, and brings back lost wake-ups. */
export function startWorker(
  deps: WorkerDeps,
  options: WorkerOptions = defaultWorkerOptions,
): RunningWorker {
  const { queue, log, clock } = deps;
  const tasks = options.tasks ?? {};
  const { concurrency } = options;

  const fetches = runEvery({ log, clock, name: "fetches" }, 1_000, async () => ({
    more: (await fetchDueObjects(deps)) > 0,
  }));
  const relay = runEvery({ log, clock, name: "relay" }, options.relayIntervalMs, async () => {
    const seqs = await takeRelayRows(deps.db, options.relay);
    for (let at = 0; at < seqs.length; at += maxSeqsPerBatch) {
      await handOver(deps, seqs.slice(at, at + maxSeqsPerBatch));
    }
    return { more: false };
  });
  const schedules = runEvery({ log, clock, name: "schedules" }, 10_000, async () => {
    for (const [task, { schedule }] of Object.entries(tasks)) {
      if (!(await queue.hasSchedule(task))) await queue.upsertSchedule(task, schedule);
    }
    return { more: false };
  });
  const consumers = [
    queue.consume("apply", async ({ seqs }) => applyBatch(deps, seqs), { concurrency }),
    queue.consume("schedule", async ({ task }) => tasks[task]?.run(), { concurrency: 1 }),
  ];

  const startedAt = clock.now();
  return {
    isAlive() {
      const last = relay.lastRoundAt() ?? startedAt;
      return clock.now().getTime() - last.getTime() < stalledAfterMs;
    },
    async close() {
      await Promise.all([...consumers, relay, fetches, schedules].map((part) => part.close()));
    },
  };
}

/** The queue is how several workers share the work; while it is away, whoever found the rows applies them. */
async function handOver(deps: WorkerDeps, seqs: number[]): Promise<void> {
  try {
    await deps.queue.add("apply", { seqs });
  } catch {
    await applyBatch(deps, seqs);
  }
}
