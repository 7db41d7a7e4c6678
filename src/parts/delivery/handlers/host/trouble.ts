import type { EndedHost } from "./host-process.ts";

/** What is known of a process that has ended. */
export interface Trouble {
  /** The time of its first end of a row of them, by `performance.now()`. */
  sinceMs: number;
  /** Why it last ended. */
  why: string;
  /** Its ends after it had begun to run handlers. */
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

/** What kept it from its start is over once it runs; what ended it may come again. */
export const onceItRuns = (trouble: Trouble | null): Trouble | null =>
  trouble === null || trouble.crashes === 0 ? null : trouble;

/**
 * Whether people are to know: it does not run, or it has ended more than once and has not run for `calmMs` since. One
 * end by itself is over when it runs again. `ranMs` is null while it does not run.
 */
export const isTold = (trouble: Trouble | null, ranMs: number | null, calmMs: number): trouble is Trouble =>
  trouble !== null && (ranMs === null || (trouble.crashes > 1 && ranMs <= calmMs));
