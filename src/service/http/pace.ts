/** How far apart requests start. Time is passed in, in milliseconds. */
export interface Pace {
  /** How long the next request has to wait. */
  waitMs(now: number): number;
  /** A request starts now. */
  started(now: number): void;
  /** The service said 429: nothing starts for a while, then at half the rate. */
  slowDown(now: number, pauseMs: number): void;
  /** The service answered well: a little faster again. */
  speedUp(): void;
}

const slowestIntervalMs = 10_000;
/** A longer gap is idleness, not a rate. */
const longestObservedMs = 1_000;
/** Below this a pace is no longer felt. */
const negligibleIntervalMs = 5;
const recovery = 0.97;

/**
 * Starts without a limit, since the spec does not show the service's limits, and learns from 429: the
 * interval becomes twice what it was, or twice the interval observed of late, and recovers by 3 % with
 * every good answer.
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
      // A clock that is set back must not stretch a pause.
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
      // Requests that were under way together are refused together: that counts once.
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
