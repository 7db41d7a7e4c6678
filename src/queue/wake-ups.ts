import { setTimeout as sleep } from "node:timers/promises";
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
/** A job of so many comes from a busy receiver, which waits a little before it makes the next. */
const busySeqs = 10;
const busyPauseMs = 15;

/**
 * Turns committed batches into jobs, one `add` in flight: what is committed meanwhile goes together in the
 * next job. An idle receiver wakes a worker at once. A busy one makes few jobs, each of them large: what a job
 * costs the queue does not depend on its size.
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
