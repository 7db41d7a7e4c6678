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

const methods = ["debug", "error", "info", "log", "warn"] as const;

/**
 * Turns what libraries print to the console into lines of the log, until the returned function is called. Rate limited,
 * since a driver may print with every connection.
 */
export function logConsole(warn: RateLimitedWarnings): () => void {
  const former = methods.map((method) => [method, console[method]] as const);
  for (const method of methods) {
    console[method] = (...printed: unknown[]) =>
      warn("a library printed a line", { line: printed.map(String).join(" ").slice(0, 500) });
  }
  return () => {
    for (const [method, print] of former) console[method] = print;
  };
}
