import type { Clock } from "../../platform/clock.ts";

/** Reads of single objects (refetches) go before the pages of a list. */
export type CallPriority = "fetch" | "walk";

const priorities: readonly CallPriority[] = ["fetch", "walk"];

/** Waits; rejects when the signal aborts. Injected, so that tests need not wait. */
export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>;

export interface CallGate {
  /**
   * Waits for a free place and for the pace. The caller must call the returned function when its request is over.
   * Rejects with the signal's reason when that aborts first.
   */
  acquire(priority: CallPriority, signal: AbortSignal): Promise<() => void>;
}

type Waiting = { admit: () => void };

/**
 * Limits the number of concurrent requests to `places`, and their rate to the pace. A free place goes to the fetch that
 * has waited longest, and to a walk only when no fetch waits.
 */
export function createCallGate(
  { clock, pace, sleep, closing }: { clock: Clock; pace: Pace; sleep: Sleep; closing: AbortSignal },
  places: number,
): CallGate {
  const waiting: Record<CallPriority, Set<Waiting>> = { fetch: new Set(), walk: new Set() };
  let running = 0;
  let asleep = false;

  function next(): [Set<Waiting>, Waiting] | null {
    for (const priority of priorities) {
      const [first] = waiting[priority];
      if (first !== undefined) return [waiting[priority], first];
    }
    return null;
  }

  function admitWaiting(): void {
    for (let first = next(); first !== null && running < places; first = next()) {
      const waitMs = pace.waitMs(clock.now().getTime());
      if (waitMs > 0) {
        wakeAfter(waitMs);
        return;
      }
      const [queue, waiter] = first;
      queue.delete(waiter);
      running += 1;
      pace.started(clock.now().getTime());
      waiter.admit();
    }
  }

  function wakeAfter(waitMs: number): void {
    if (asleep) return;
    asleep = true;
    const wake = (): void => {
      asleep = false;
      admitWaiting();
    };
    // Closing rejects the sleep. Callers still waiting are rejected by their own signals.
    sleep(waitMs, closing).then(wake, () => undefined);
  }

  function release(): void {
    running -= 1;
    admitWaiting();
  }

  return {
    acquire(priority, signal) {
      return new Promise((resolve, reject) => {
        const abandon = (): void => {
          waiting[priority].delete(waiter);
          reject(signal.reason as Error);
        };
        let isReleased = false;
        const waiter: Waiting = {
          admit: () => {
            signal.removeEventListener("abort", abandon);
            resolve(() => {
              if (!isReleased) release();
              isReleased = true;
            });
          },
        };
        if (signal.aborted) {
          reject(signal.reason as Error);
          return;
        }
        signal.addEventListener("abort", abandon, { once: true });
        waiting[priority].add(waiter);
        admitWaiting();
      });
    },
  };
}

/** The interval between the starts of requests. Time is passed in, in milliseconds. */
export interface Pace {
  waitMs(now: number): number;
  started(now: number): void;
  /** The service answered 429: no request starts for a while, then they start at half the rate. */
  slowDown(now: number, pauseMs: number): void;
  /** The service accepted a request: the rate rises a little. */
  speedUp(): void;
}

const slowestIntervalMs = 10_000;
/** A longer gap means idleness, not a rate. */
const longestObservedMs = 1_000;
/** A shorter interval counts as none. */
const negligibleIntervalMs = 5;
const recovery = 0.97;

/**
 * Starts without a limit, since the interface states no rate limits, and adapts to each 429: the interval becomes twice
 * the larger of the current and the recently observed one, and shrinks by 3 % with every good answer.
 */
export function createPace(): Pace {
  let intervalMs = 0;
  let observedIntervalMs = 0;
  let lastStart: number | null = null;
  let pausedUntil = Number.NEGATIVE_INFINITY;
  let longestWaitMs = 0;

  return {
    waitMs(now) {
      const nextStart = lastStart === null ? now : lastStart + intervalMs;
      // A clock that is set back must not lengthen a pause.
      return Math.min(longestWaitMs, Math.max(0, pausedUntil - now, nextStart - now));
    },
    started(now) {
      if (lastStart !== null && lastStart >= pausedUntil) {
        const sinceLast = Math.min(longestObservedMs, Math.max(0, now - lastStart));
        observedIntervalMs += (sinceLast - observedIntervalMs) / 8;
      }
      lastStart = now;
      longestWaitMs = intervalMs;
    },
    slowDown(now, pauseMs) {
      // Requests in flight together are refused together: they count as one refusal.
      if (now >= pausedUntil) {
        const doubled = 2 * Math.max(intervalMs, observedIntervalMs, negligibleIntervalMs);
        intervalMs = Math.min(slowestIntervalMs, doubled);
      }
      pausedUntil = Math.max(pausedUntil, now + pauseMs);
      longestWaitMs = Math.max(longestWaitMs, pauseMs, intervalMs);
    },
    speedUp() {
      intervalMs *= recovery;
      if (intervalMs < negligibleIntervalMs) intervalMs = 0;
    },
  };
}
