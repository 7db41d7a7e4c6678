import type { Log } from "../platform/log.ts";
import type { JobQueue } from "./job-queue.ts";

export interface WakeUps {
  /** Says that these events are committed. Never throws and never waits: a lost wake-up costs a delay only. */
  notify(seqs: readonly number[]): void;
  /** Adds what waits, once; what the queue refuses is left to the relay. */
  close(): Promise<void>;
}

/** More than this is left to the relay: the queue is away. */
const maxPending = 50_000;
const maxSeqsPerJob = 500;

/**
 * Turns committed batches into jobs, one `add` in flight: what is committed meanwhile goes together in the
 * next job. An idle receiver wakes a worker at once, a busy one makes few jobs, each of them large.
 */
export function createWakeUps({ queue, log }: { queue: Pick<JobQueue, "add">; log: Log }): WakeUps {
  let pending: number[] = [];
  let adding: Promise<void> | null = null;

  async function addAll(): Promise<void> {
    while (pending.length > 0) {
      const seqs = pending.splice(0, maxSeqsPerJob);
      try {
        await queue.add("apply", { seqs });
      } catch (err) {
        log.debug({ err, events: seqs.length }, "a wake-up was lost");
        pending = [];
      }
    }
    adding = null;
  }

  return {
    notify(seqs) {
      if (seqs.length === 0 || pending.length > maxPending) return;
      pending.push(...seqs);
      adding ??= addAll();
    },
    close: async () => {
      await adding;
    },
  };
}
