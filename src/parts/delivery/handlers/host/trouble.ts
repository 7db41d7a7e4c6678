import type { EndedHost } from "./host-process.ts";

/** The record of processes that have ended. */
export interface Trouble {
  /** The time of the first end in a row, by `performance.now()`. */
  sinceMs: number;
  /** The reason of its last end. */
  why: string;
  /** The number of ends after it had begun to run handlers. */
  crashes: number;
}

/** A process that ran for `calmMs` before it ended has ended for the first time again. Pure but for the time. */
export function afterEnd(
  before: Trouble | null,
  { why, ranMs }: Pick<EndedHost, "why" | "ranMs">,
  calmMs: number,
): Trouble {
  const last = ranMs > calmMs ? null : before;
  return {
    sinceMs: last?.sinceMs ?? performance.now(),
    why,
    crashes: (last?.crashes ?? 0) + (ranMs > 0 ? 1 : 0),
  };
}

/** A trouble at its start is over once it runs; one that ended it may recur. */
export const onceItRuns = (trouble: Trouble | null): Trouble | null =>
  trouble === null || trouble.crashes === 0 ? null : trouble;

/**
 * Whether it is reported: it does not run, or it has ended more than once and has not run for `calmMs` since. One end
 * by itself is over when it runs again. `ranMs` is null while it does not run.
 */
export const isTold = (trouble: Trouble | null, ranMs: number | null, calmMs: number): trouble is Trouble =>
  trouble !== null && (ranMs === null || (trouble.crashes > 1 && ranMs <= calmMs));
