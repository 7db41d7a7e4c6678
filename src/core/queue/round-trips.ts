import type { Log } from "../../platform/log.ts";
import { runEvery } from "../../platform/run-every.ts";
import type { JobQueue } from "./job-queue.ts";

export interface RoundTrips {
  /** Resolves if the last job came back, and rejects with why it did not. Waits for the first one only. */
  check(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Sends a job round again and again: a queue is healthy when a job came back. Accepting jobs proves nothing, since a
 * queue without consumers accepts them as well.
 */
export function watchRoundTrips(
  { queue, log }: { queue: Pick<JobQueue, "roundTrip">; log: Log },
  { betweenMs = 5_000 }: { betweenMs?: number } = {},
): RoundTrips {
  let failure: Error | undefined;
  let ended = (): void => {};
  const closing = new AbortController();
  const first = new Promise<void>((resolve) => (ended = resolve));
  const loop = runEvery({ log, name: "round trips" }, betweenMs, async () => {
    const before = failure;
    try {
      await queue.roundTrip({ signal: closing.signal });
      failure = undefined;
    } catch (error) {
      failure = error instanceof Error ? error : new Error("no job came back", { cause: error });
    }
    if (closing.signal.aborted) return { more: false };
    if (failure !== undefined && before === undefined) {
      log.warn({ err: failure }, "no job comes back from the queue: events wait some seconds for the relay");
    }
    if (failure === undefined && before !== undefined) log.info("jobs come back from the queue");
    ended();
    return { more: false };
  });
  return {
    async check() {
      await first;
      if (failure !== undefined) throw failure;
    },
    async close() {
      closing.abort();
      await loop.close();
    },
  };
}
