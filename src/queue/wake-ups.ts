import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../platform/log.ts";
import type { JobQueue } from "./job-queue.ts";

export interface WakeUps {
  /** Announces committed events to the workers. Never throws and never waits: a lost wake-up only costs a delay. */
  notify(seqs: readonly number[]): void;
  /** Adds the events that still wait. The relay recovers those that the queue refuses. */
  close(): Promise<void>;
}

/** The limit of waiting events. With so many, the queue is down, and further ones are left to the relay. */
const maxPending = 50_000;
const maxSeqsPerJob = 500;
/** A job of this many events means that the receiver is busy: it then waits a little before it adds the next. */
const busySeqs = 10;
const busyPauseMs = 15;

/**
 * Turns committed batches into jobs, with one `add` in flight; events committed meanwhile share the next job. An idle
 * receiver wakes a worker at once. A busy one makes few, large jobs: the queue's cost of a job does not depend on its
 * size.
 */
export function createWakeUps({ queue, log }: { queue: Pick<JobQueue, "add">; log: Log }): WakeUps {
  let pending: number[] = [];
  let adding: Promise<void> | null = null;
  const closing = new AbortController();

  async function addAll(): Promise<void> {
    while (pending.length > 0) {
      const seqs = pending.splice(0, maxSeqsPerJob);
      try {
        await queue.add("apply", { seqs });
      } catch (err) {
        log.debug({ err, events: seqs.length }, "a wake-up was lost");
        pending = [];
      }
      if (seqs.length >= busySeqs && seqs.length < maxSeqsPerJob) await pause();
    }
    adding = null;
  }

  const pause = () => sleep(busyPauseMs, undefined, { signal: closing.signal }).catch(() => {});

  return {
    notify(seqs) {
      if (seqs.length === 0 || pending.length > maxPending) return;
      pending.push(...seqs);
      adding ??= addAll();
    },
    close: async () => {
      closing.abort();
      await adding;
    },
  };
}
