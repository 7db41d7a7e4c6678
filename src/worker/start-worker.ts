import { type RelayLimits, type RelayRows, takeRelayRows } from "../inbox/relay.ts";
import { runEvery } from "../platform/run-every.ts";
import { type JobQueue, QueueUnavailable, type Schedule } from "../queue/job-queue.ts";
import { type ApplyDeps, applyBatch } from "./apply-batch.ts";
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
  /** Loops that do not call the service: relay and schedules. A round fails far sooner when the database is down. */
  statements: number;
  /** Loops that read from the service: one read with all its retries, and applying its answer. */
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

const maxSeqsPerBatch = 500;
/** Jobs taken at once, to be merged into larger batches (`mergeBatches`). */
const jobsAtOnce = 32;

/** Starts a worker: it applies events, makes refetches, runs scheduled tasks, and relays events that the queue lost. */
export function startWorker(
  deps: WorkerDeps,
  options: WorkerOptions = defaultWorkerOptions,
): RunningWorker {
  const { queue, log } = deps;
  const tasks = options.tasks ?? {};
  const stopping = new AbortController();
  const runTask = createTaskRunner(tasks, stopping.signal);

  const apply = mergeBatches((seqs) => applyBatch(deps, seqs), {
    atOnce: options.concurrency,
    maxSeqs: maxSeqsPerBatch,
  });
  const fetches = runEvery({ log, name: "fetches" }, 1_000, async () => ({
    more: (await refetchDueObjects(deps)) > 0,
  }));
  const disputes = runEvery({ log, name: "disputes" }, 1_000, async (reportProgress) => ({
    more: (await walkDisputes(deps, stopping.signal, reportProgress)) > 0,
  }));
  const relay = runEvery(
    { log, name: "relay" },
    options.relayIntervalMs,
    async (reportProgress) => {
      await relayRows(deps, await takeRelayRows(deps.db, options.relay), reportProgress);
      return { more: false };
    },
  );
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
    queue.consume("apply", ({ seqs }) => apply(seqs), { concurrency: jobsAtOnce }),
    queue.consume("schedule", ({ task }) => runTask(task), {
      concurrency: Math.max(1, Object.keys(tasks).length),
    }),
  ];

  const stalledAfterMs = options.stalledAfterMs ?? defaultStallLimits;
  return {
    isAlive: () =>
      [relay, schedules].every((loop) => loop.sinceProgressMs() < stalledAfterMs.statements) &&
      [fetches, disputes].every((loop) => loop.sinceProgressMs() < stalledAfterMs.reads),
    async close() {
      stopping.abort(new Error("the worker is stopping"));
      const parts = [...consumers, relay, fetches, disputes, schedules];
      await Promise.all(parts.map((part) => part.close()));
    },
  };
}

/**
 * Relays events through the queue, which shares them among workers. While the queue is down, this worker applies them
 * itself. It also applies those that were relayed before without effect: a queue may accept jobs and deliver them to
 * nobody. If it was only busy, its later job finds nothing left to do.
 */
async function relayRows(
  deps: WorkerDeps,
  { first, again }: RelayRows,
  reportProgress: () => void,
): Promise<void> {
  let isQueueDown = false;
  for (const batch of batchesOf(first)) {
    isQueueDown ||= !(await isAdded(deps, batch));
    if (isQueueDown) await applyBatch(deps, batch);
    reportProgress();
  }
  for (const batch of batchesOf(again)) {
    await applyBatch(deps, batch);
    reportProgress();
  }
}

function* batchesOf(seqs: readonly number[]): Generator<number[]> {
  for (let at = 0; at < seqs.length; at += maxSeqsPerBatch) {
    yield seqs.slice(at, at + maxSeqsPerBatch);
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

interface Waiting {
  seqs: readonly number[];
  resolve(): void;
  reject(error: unknown): void;
}

export interface MergeLimits {
  /** Batches applied at the same time. */
  atOnce: number;
  /** The most sequence numbers in a merged batch. */
  maxSeqs: number;
}

/**
 * Merges jobs that arrive while others are being applied, as the inbox does with its INSERTs. A batch has at most
 * `maxSeqs` numbers, or is one job, since jobs are not split. A worker that keeps up applies each job at once; one that
 * has fallen behind applies many together. Each call resolves or rejects with its batch.
 */
export function mergeBatches(
  apply: (seqs: readonly number[]) => Promise<void>,
  { atOnce, maxSeqs }: MergeLimits,
): (seqs: readonly number[]) => Promise<void> {
  let waiting: Waiting[] = [];
  let working = 0;

  function takeBatch(): Waiting[] {
    let count = 0;
    let seqs = 0;
    for (const each of waiting) {
      if (count > 0 && seqs + each.seqs.length > maxSeqs) break;
      seqs += each.seqs.length;
      count++;
    }
    const batch = waiting.slice(0, count);
    waiting = waiting.slice(count);
    return batch;
  }

  async function applyWaiting(): Promise<void> {
    working++;
    while (waiting.length > 0) {
      const batch = takeBatch();
      try {
        await apply([...new Set(batch.flatMap(({ seqs }) => seqs))]);
        for (const { resolve } of batch) resolve();
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    working--;
  }

  return (seqs) =>
    new Promise((resolve, reject) => {
      waiting.push({ seqs, resolve, reject });
      if (working < atOnce) void applyWaiting();
    });
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
