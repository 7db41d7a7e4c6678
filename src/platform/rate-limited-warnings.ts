import type { Clock } from "./clock.ts";
import type { Log } from "./log.ts";

/** Warns, unless the same message was logged recently. */
export type RateLimitedWarnings = (message: string, fields: Readonly<Record<string, unknown>>) => void;

/**
 * Any sender can cause a refused request, so each message is logged immediately, and then at most once in `everyMs`,
 * with the number of those left out. `message` must be one of a few constants.
 */
export function createRateLimitedWarnings(
  { log, clock }: { log: Log; clock: Clock },
  { everyMs = 10_000 }: { everyMs?: number } = {},
): RateLimitedWarnings {
  const logged = new Map<string, { atMs: number; leftOut: number }>();
  return (message, fields) => {
    const nowMs = clock.now().getTime();
    const before = logged.get(message);
    if (before !== undefined && Math.abs(nowMs - before.atMs) < everyMs) {
      before.leftOut += 1;
      return;
    }
    log.warn({ ...fields, leftOut: before?.leftOut ?? 0 }, message);
    logged.set(message, { atMs: nowMs, leftOut: 0 });
  };
}
