import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../../../platform/log.ts";
import { errorCode } from "../../../platform/postgres/errors.ts";

/** How long a reading stands. */
const freshMs = 10 * 60_000;
const statementTimedOut = "57014";

/** Too slow: the database gave up, or failed. Computing: a later load of the page has it. */
export type Beside<T> = T | "computing" | "too slow";

/**
 * For a reading that takes longer than a page may: it is made beside the pages, at most once in ten minutes. No page
 * waits longer than `waitsMs` for it. `failed`: what the log says of a failure other than the database's time limit.
 */
export function createBeside<T>({
  log,
  waitsMs,
  failed,
}: {
  log: Pick<Log, "warn">;
  waitsMs: number;
  failed: string;
}): (now: Date, read: () => Promise<T>) => Promise<Beside<T>> {
  let kept: { at: Date; answer: Promise<Beside<T>> } | null = null;

  const compute = (read: () => Promise<T>): Promise<Beside<T>> =>
    read().catch((err: unknown) => {
      if (errorCode(err) !== statementTimedOut) log.warn({ err }, failed);
      return "too slow";
    });

  return async (now, read) => {
    // A clock that was set back gives no valid age.
    const age = kept === null ? Infinity : Math.abs(now.getTime() - kept.at.getTime());
    if (kept === null || age >= freshMs) kept = { at: now, answer: compute(read) };
    return Promise.race([kept.answer, sleep(waitsMs, "computing" as const, { ref: false })]);
  };
}
