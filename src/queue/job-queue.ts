import { setTimeout as sleep } from "node:timers/promises";
import type { JobSchedulerJson, Queue, Worker } from "bullmq";
import { TallyhookError } from "../platform/errors.ts";
import type { Log } from "../platform/log.ts";
import {
  type BackendLocation,
  type JobPayload,
  type QueueName,
  createBackend,
  jobSchemas,
  writeToQueue,
} from "./backend.ts";

/** The queue cannot accept or deliver jobs now. The inbox keeps the pending work. */
export class QueueUnavailable extends TallyhookError {}

/** The error that the queue stores with a failed job. */
class JobFailed extends TallyhookError {}

/** When a task runs: at a fixed interval, or by a cron pattern in an IANA time zone. */
export type Schedule = { everyMs: number } | { cron: string; timeZone: string };

export interface JobQueue {
  /**
   * Adds one job, or throws `QueueUnavailable` within two seconds. After the error the job may still be added later.
   */
  add<Name extends QueueName>(name: Name, payload: JobPayload<Name>): Promise<void>;
  /**
   * Passes every job to the handler, `concurrency` at a time. When the handler throws, the job fails and is not
   * retried.
   */
  consume<Name extends QueueName>(
    name: Name,
    handler: (payload: JobPayload<Name>) => Promise<void>,
    options: { concurrency: number },
  ): Consumer;
  /** Creates or updates a schedule. Idempotent. Throws `QueueUnavailable`. */
  upsertSchedule(task: string, schedule: Schedule): Promise<void>;
  /** Whether the task has exactly this schedule, not that of an earlier start. Throws `QueueUnavailable`. */
  hasSchedule(task: string, schedule: Schedule): Promise<boolean>;
  /**
   * Throws `QueueUnavailable` when the backend does not take a write within two seconds: it is away, read-only, full, or
   * in the midst of a failover. Leaves nothing behind.
   */
  ping(): Promise<void>;
  /** How many jobs there are, by queue and state. Throws `QueueUnavailable`. */
  depths(): Promise<QueueDepth[]>;
  close(): Promise<void>;
}

export interface QueueDepth {
  queue: QueueName;
  waiting: number;
  active: number;
  delayed: number;
  failed: number;
  /** When the job that has waited longest was added; null where none waits. */
  oldestWaitingAt: Date | null;
}

const answerTimeoutMs = 2_000;
const closeTimeoutMs = 5_000;

export function createJobQueue({ log }: { log: Log }, location: BackendLocation): JobQueue {
  const backend = createBackend(location);
  const queues = new Map<QueueName, Queue>();
  const hasAnswered = new WeakSet<Queue>();
  const consumers = new Set<Consumer>();
  const outageLog = createOutageLog(log, location.kind);
  /** A queue that is full or only reads still answers questions: after a refused write, only a write ends the outage. */
  let refusesWrites = false;

  function queueOf(name: QueueName): Queue {
    const known = queues.get(name);
    if (known !== undefined) return known;
    const queue = backend.queue(name);
    queue.on("error", outageLog.down);
    queues.set(name, queue);
    return queue;
  }

  async function answered<T>(
    kind: "read" | "write",
    name: QueueName,
    call: (queue: Queue) => Promise<T>,
  ): Promise<T> {
    const queue = queueOf(name);
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
        queues.delete(name);
        void closeSoon(queue);
      }
      throw new QueueUnavailable(
        `The job queue (${location.kind}) does not answer. Events wait in the inbox until it does.`,
        { cause },
      );
    }
  }

  return {
    async add(name, payload) {
      const data = jobSchemas[name].parse(payload);
      await answered("write", name, (queue) => queue.add(name, data));
    },
    consume(name, handler, { concurrency }) {
      const makeWorker = () => {
        const worker = backend.worker(
          name,
          async (job) => {
            try {
              // Jobs are untrusted input: another version, or a person, may have added them.
              await handler(jobSchemas[name].parse(job.data) as JobPayload<typeof name>);
            } catch (cause) {
              // BullMQ stores the message, which may quote the handler's data. The log redacts; the queue does not.
              throw new JobFailed("The log of the worker says why.", { cause });
            }
          },
          concurrency,
        );
        worker.on("error", outageLog.down);
        worker.on("failed", (job, err) =>
          log.warn({ err, job: job?.id, queue: name }, "a job failed"),
        );
        return worker;
      };
      const { close } = startConsumer(makeWorker, closeSoon, outageLog.down);
      const consumer = {
        close: async () => {
          consumers.delete(consumer);
          await close();
        },
      };
      consumers.add(consumer);
      return consumer;
    },
    upsertSchedule: (task, schedule) =>
      answered("write", "schedule", async (queue) => {
        const known = await queue.getJobScheduler(task);
        // BullMQ would keep the old interval's offset, by which a task that was hourly would start far too late.
        if (known !== undefined && !hasSchedule(known, schedule))
          await queue.removeJobScheduler(task);
        await queue.upsertJobScheduler(task, repeatOf(schedule), {
          name: "schedule",
          data: { task },
        });
      }),
    hasSchedule: (task, schedule) =>
      answered("read", "schedule", async (queue) => {
        const known = await queue.getJobScheduler(task);
        return known !== undefined && hasSchedule(known, schedule);
      }),
    ping: () => answered("write", "apply", writeToQueue),
    depths: () => Promise.all(queueNames.map((name) => answered("read", name, depthOf))),
    async close() {
      await Promise.all([...consumers].map((consumer) => consumer.close()));
      await Promise.all([...queues.values()].map(closeSoon));
    },
  };
}

const queueNames = Object.keys(jobSchemas) as QueueName[];

async function depthOf(queue: Queue): Promise<QueueDepth> {
  const counts = await queue.getJobCounts("waiting", "active", "delayed", "failed");
  const [oldest] = await queue.getWaiting(0, 0);
  return {
    queue: queue.name as QueueName,
    waiting: counts["waiting"] ?? 0,
    active: counts["active"] ?? 0,
    delayed: counts["delayed"] ?? 0,
    failed: counts["failed"] ?? 0,
    oldestWaitingAt: oldest === undefined ? null : new Date(oldest.timestamp),
  };
}

/** The schedule in BullMQ's form. */
const repeatOf = (schedule: Schedule) =>
  "everyMs" in schedule
    ? { every: schedule.everyMs }
    : { pattern: schedule.cron, tz: schedule.timeZone };

const hasSchedule = ({ every, pattern, tz }: JobSchedulerJson, schedule: Schedule): boolean =>
  "everyMs" in schedule
    ? Number(every) === schedule.everyMs
    : pattern === schedule.cron && tz === schedule.timeZone;

/** Logs one line when the backend goes down and one when it is back, not one for each attempt. */
function createOutageLog(log: Log, kind: string) {
  let isDown = false;
  return {
    down: (err: unknown) => {
      if (!isDown) log.warn({ err, backend: kind }, "the job queue does not answer");
      isDown = true;
    },
    up: () => {
      if (isDown) log.info({ backend: kind }, "the job queue answers again");
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
