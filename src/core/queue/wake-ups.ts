import type { Log } from "../../platform/log.ts";
import type { JobQueue } from "./job-queue.ts";

export interface WakeUps {
  /** Reports that events were committed. Never throws and never waits: a lost wake-up only costs a delay. */
  notify(): void;
  /** Waits for the job that is being added. */
  close(): Promise<void>;
}

/** A worker stays awake for longer than this (worker/apply-loop.ts), so one job a second wakes it in time. */
const betweenJobsMs = 1_000;

/**
 * Wakes a worker: by an immediate job after a quiet time, and by one a second as long as events come. A worker that is
 * awake finds the others by itself.
 */
export function createWakeUps({ queue, log }: { queue: Pick<JobQueue, "add">; log: Log }): WakeUps {
  let addedMs = Number.NEGATIVE_INFINITY;
  let adding: Promise<void> | null = null;

  async function add(): Promise<void> {
    const startedMs = performance.now();
    try {
      await queue.add();
      addedMs = startedMs;
    } catch (err) {
      log.debug({ err }, "a wake-up was lost");
    }
    adding = null;
  }

  return {
    notify() {
      if (adding === null && performance.now() - addedMs >= betweenJobsMs) adding = add();
    },
    close: async () => {
      await adding;
    },
  };
}
