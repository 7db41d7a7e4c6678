import type { Clock } from "../../src/platform/clock.ts";
import type { Sleep } from "../../src/core/client/pace.ts";

export interface TestTime {
  clock: Clock;
  /** Passes the time at once, on the clock. */
  sleep: Sleep;
  sleeps: number[];
  elapsedMs(): number;
  advance(ms: number): void;
}

/** A clock that stands still but for what is slept or advanced. */
export function createTestTime(start = new Date("2026-03-01T12:00:00.000Z")): TestTime {
  let elapsed = 0;
  const sleeps: number[] = [];
  return {
    clock: { now: () => new Date(start.getTime() + elapsed) },
    sleeps,
    elapsedMs: () => elapsed,
    advance(ms) {
      elapsed += ms;
    },
    async sleep(ms, signal) {
      sleeps.push(ms);
      await new Promise((resolve) => setImmediate(resolve));
      signal.throwIfAborted();
      elapsed += ms;
    },
  };
}
