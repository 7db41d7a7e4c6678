import { setTimeout as sleep } from "node:timers/promises";
import { isOutage } from "../../platform/postgres/errors.ts";
import type { CliContext } from "./context.ts";
import { untilSignal } from "./until-signal.ts";

const lookEveryMs = 500;

export interface Followed<T> {
  /** The rows that exist at the start. */
  first: readonly T[];
  /** Reads the rows that came since the last poll, in order; `more`: poll again immediately. */
  look(): Promise<{ rows: readonly T[]; more: boolean }>;
  lineOf(row: T): string;
  signal: AbortSignal;
}

/** Ends at Ctrl-C, and when a reader has seen enough, such as `head`. */
export function followSignal({ stdout }: Pick<CliContext, "stdout">): AbortSignal {
  const stop = new AbortController();
  void untilSignal().then(() => stop.abort());
  stdout.once("error", () => stop.abort());
  return stop.signal;
}

/**
 * Prints existing rows and then new ones, one a line, until the signal. Polls every half second, and waits while the
 * database is unreachable. At most one page is held in memory.
 */
export async function printAsItComes<T>(
  { stdout, stderr }: Pick<CliContext, "stdout" | "stderr">,
  { first, look, lineOf, signal }: Followed<T>,
): Promise<void> {
  const print = (rows: readonly T[]) =>
    new Promise<void>((resolve) => {
      // Resolves when the reader has taken the lines or is gone. Without the wait, a slow reader would fill the memory.
      stdout.write(rows.map((row) => `${lineOf(row)}\n`).join(""), () => resolve());
    });
  const aborted = new Promise<null>((resolve) => {
    signal.addEventListener("abort", () => resolve(null), { once: true });
  });
  await Promise.race([print(first), aborted]);
  let isAway = false;
  while (!signal.aborted) {
    try {
      // A database that hangs or a reader that does not read must not delay the end of the command.
      const seen = await Promise.race([look(), aborted]);
      if (seen === null) return;
      if (isAway) stderr.write("tallyhook: the database answers again; what arrived in between follows.\n");
      isAway = false;
      if (seen.rows.length > 0) await Promise.race([print(seen.rows), aborted]);
      if (seen.more) continue;
    } catch (error) {
      if (!isOutage(error)) throw error;
      if (!isAway) {
        stderr.write("tallyhook: the database does not answer; trying again until it does.\n");
      }
      isAway = true;
    }
    await sleep(lookEveryMs, undefined, { signal }).catch(() => {});
  }
}
