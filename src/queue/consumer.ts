import { setTimeout as sleep } from "node:timers/promises";
import type { Worker } from "bullmq";

export interface Consumer {
  /** Takes no new jobs, waits for those at work. */
  close(): Promise<void>;
}

const retryDelayMs = 1_000;
const readyTimeoutMs = 1_000;

/**
 * Works on jobs from whenever the backend is there until it is closed. BullMQ on PostgreSQL remembers a first
 * connection that failed for ever, and its worker would then spin: such a worker is thrown away and another is made.
 */
export function startConsumer(
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
      // BullMQ loses a connection that is being made while it closes, and an error on that one would end the process.
      await Promise.race([ready.catch(() => {}), sleep(readyTimeoutMs, undefined, { ref: false })]);
      await discard(worker);
    },
  };
}
