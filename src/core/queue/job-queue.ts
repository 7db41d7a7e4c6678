import { setTimeout as sleep } from "node:timers/promises";
import type { Job, JobType, Queue, Worker } from "bullmq";
import { TallyhookError } from "../../platform/errors.ts";
import type { Log } from "../../platform/log.ts";
import { type BackendLocation, createBackend, queueName } from "./backend.ts";

/** The queue cannot accept or deliver jobs now. The inbox keeps the pending work. */
export class QueueUnavailable extends TallyhookError {}

/** The queue accepted a job, and no consumer took it in time. */
export class JobNotTaken extends QueueUnavailable {}

export interface JobQueue {
  /**
   * Adds one job, or throws `QueueUnavailable` within two seconds. After the error the job may still be added later.
   */
  add(): Promise<void>;
  /** Calls the handler for every job, one at a time. */
  consume(handler: () => void): Consumer;
  /**
   * Adds a job that wakes no worker and returns when a consumer of any process has finished it. Throws
   * `QueueUnavailable` when it is not accepted within two seconds (the backend is away, read-only, full, or in a
   * failover), and `JobNotTaken` when it does not come back within `withinMs`. The signal ends the wait. There is at
   * most one such job, which all processes share; it waits until a consumer takes it, so `depth` shows since when none
   * does.
   */
  roundTrip(options?: { withinMs?: number; signal?: AbortSignal }): Promise<void>;
  /** Number of jobs by state. Throws `QueueUnavailable`. */
  depth(): Promise<QueueDepth>;
  close(): Promise<void>;
}

export interface QueueDepth {
  queue: typeof queueName;
  /** Includes the jobs of a paused queue. */
  waiting: number;
  active: number;
  delayed: number;
  failed: number;
  /** When the oldest waiting job was added, by the clock of its sender; null where none waits. */
  oldestWaitingAt: Date | null;
}

const answerTimeoutMs = 2_000;
const closeTimeoutMs = 5_000;
const roundTripMs = 5_000;
const roundTripPollMs = 50;

/** Name and id of the job that only shows that jobs come back. */
const trial = "trial";

export function createJobQueue({ log }: { log: Log }, location: BackendLocation): JobQueue {
  const backend = createBackend(location);
  let opened: Queue | undefined;
  const hasAnswered = new WeakSet<Queue>();
  const consumers = new Set<Consumer>();
  const outageLog = createOutageLog(log, location.kind, {
    down: "the job queue does not answer",
    up: "the job queue answers again",
  });
  /** A queue that is full or only reads still answers questions: after a refused write, only a write ends the outage. */
  let refusesWrites = false;

  function open(): Queue {
    if (opened === undefined) {
      opened = backend.queue();
      opened.on("error", outageLog.down);
    }
    return opened;
  }

  async function answered<T>(kind: "read" | "write", call: (queue: Queue) => Promise<T>): Promise<T> {
    const queue = open();
    try {
      const result = await within(answerTimeoutMs, async (signal) => {
        await backend.connected(queue, signal);
        return call(queue);
      });
      hasAnswered.add(queue);
      if (kind === "write") refusesWrites = false;
      if (!refusesWrites) outageLog.up();
      return result;
    } catch (cause) {
      outageLog.down(cause);
      if (kind === "write") refusesWrites = true;
      // BullMQ on PostgreSQL never recovers from a failed first connection: the next call makes a new queue.
      if (!hasAnswered.has(queue)) {
        if (opened === queue) opened = undefined;
        void closeSoon(queue);
      }
      throw new QueueUnavailable(
        `The job queue (${location.kind}) does not answer. Events wait in the inbox until it does.`,
        { cause },
      );
    }
  }

  return {
    async add() {
      await answered("write", (queue) => queue.add("wake-up", {}));
    },
    consume(handler) {
      // A producer may reach the backend while this side does not: only a job that came ends its outage.
      const own = createOutageLog(log, location.kind, {
        down: "no job can be taken from the queue",
        up: "jobs are taken from the queue again",
      });
      const makeWorker = () => {
        const worker = backend.worker(async (job: Job) => {
          own.up();
          if (job.name !== trial) handler();
        });
        worker.on("error", own.down);
        worker.on("failed", (job, err) => log.warn({ err, job: job?.id }, "a job failed"));
        return worker;
      };
      const { close } = startConsumer(makeWorker, closeSoon, own.down);
      const consumer = {
        close: async () => {
          consumers.delete(consumer);
          await close();
        },
      };
      consumers.add(consumer);
      return consumer;
    },
    async roundTrip({ withinMs = roundTripMs, signal } = {}) {
      const once = { jobId: trial, removeOnComplete: true, removeOnFail: true };
      await answered("write", (queue) => queue.add(trial, {}, once));
      const deadlineMs = performance.now() + withinMs;
      // Finished, it is removed.
      while ((await answered("read", (queue) => queue.getJobState(trial))) !== "unknown") {
        if (performance.now() > deadlineMs) {
          throw new JobNotTaken(
            `The job queue (${location.kind}) takes jobs, and no worker took one within ${withinMs / 1_000} s.`,
          );
        }
        await sleep(roundTripPollMs, undefined, { signal });
      }
    },
    depth: () => answered("read", depthOf),
    async close() {
      await Promise.all([...consumers].map((consumer) => consumer.close()));
      if (opened !== undefined) await closeSoon(opened);
    },
  };
}

/** While a queue is paused, PostgreSQL counts what waits as `paused`, which the types of BullMQ do not know. */
const waitingStates = ["waiting", "paused"] as JobType[];

async function depthOf(queue: Queue): Promise<QueueDepth> {
  const counts = await queue.getJobCounts(...waitingStates, "active", "delayed", "failed");
  const count = (state: string): number => counts[state] ?? 0;
  const waiting = waitingStates.reduce((sum, state) => sum + count(state), 0);
  return {
    queue: queueName,
    waiting,
    active: count("active"),
    delayed: count("delayed"),
    failed: count("failed"),
    oldestWaitingAt: await oldestOf(queue, waiting),
  };
}

/** A page of waiting jobs begins at the oldest one on Redis, and at the newest on PostgreSQL: so both ends are read. */
async function oldestOf(queue: Queue, count: number): Promise<Date | null> {
  if (count === 0) return null;
  const ends = await Promise.all([0, count - 1].map((at) => queue.getJobs(["waiting"], at, at, true)));
  const times = ends.flat().map((job) => job.timestamp);
  return times.length === 0 ? null : new Date(Math.min(...times));
}

/** Logs one line when an outage begins and one when it is over, not one for each attempt. */
function createOutageLog(log: Log, backend: string, says: { down: string; up: string }) {
  let isDown = false;
  return {
    down: (err: unknown) => {
      if (!isDown) log.warn({ err, backend }, says.down);
      isDown = true;
    },
    up: () => {
      if (isDown) log.info({ backend }, says.up);
      isDown = false;
    },
  };
}
/** The signal is aborted when the time is over. */
async function within<T>(timeoutMs: number, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const over = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`no answer within ${timeoutMs} ms`));
      over.abort();
    }, timeoutMs);
  });
  try {
    return await Promise.race([call(over.signal), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Closes without hanging or failing when the backend is down; its connections end with the process. */
async function closeSoon(part: { close(): Promise<void> }): Promise<void> {
  await within(closeTimeoutMs, () => part.close()).catch(() => {});
}

export interface Consumer {
  /** Takes no new jobs and waits for those in progress. */
  close(): Promise<void>;
}

const retryDelayMs = 1_000;
const readyTimeoutMs = 1_000;

/**
 * Processes jobs from when the backend is up until it is closed. BullMQ on PostgreSQL never recovers from a failed
 * first connection, and its worker would then spin: such a worker is replaced.
 */
function startConsumer(
  makeWorker: () => Worker,
  discard: (worker: Worker) => Promise<void>,
  onError: (error: unknown) => void,
): Consumer {
  const closing = new AbortController();
  let worker = makeWorker();
  let ready = worker.waitUntilReady();
  void runUntilClosed();

  async function runUntilClosed(): Promise<void> {
    for (;;) {
      try {
        await ready;
        if (closing.signal.aborted) return;
        return await worker.run();
      } catch (error) {
        if (closing.signal.aborted) return;
        onError(error);
        void discard(worker);
        await sleep(retryDelayMs, undefined, { signal: closing.signal }).catch(() => {});
        if (closing.signal.aborted) return;
        worker = makeWorker();
        ready = worker.waitUntilReady();
      }
    }
  }

  return {
    async close() {
      closing.abort();
      // BullMQ loses track of a connection that is being opened while it closes; an error on it would end the process.
      await Promise.race([ready.catch(() => {}), sleep(readyTimeoutMs, undefined, { ref: false })]);
      await discard(worker);
    },
  };
}
