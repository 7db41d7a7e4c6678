import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";

/** How old an answer may be, how long to wait for one, and how soon a failed reading is repeated, in milliseconds. */
export interface ReadingLimits {
  freshMs: number;
  waitMs: number;
  retryMs: number;
}

export interface KeptReading<T> {
  /**
   * A reading at most `freshMs` old; null where it took longer than `waitMs`, or failed less than `retryMs` ago.
   * Concurrent callers share one reading, and one that hangs is never started a second time.
   */
  current(): Promise<T | null>;
  /** Whether the last reading succeeded in time. True before the first. */
  isReadable(): boolean;
}

/** Caches an expensive reading, so that any number of scrapes costs the same. Never throws. */
export function createKeptReading<T>(
  { log, clock, name }: { log: Log; clock: Clock; name: string },
  { freshMs, waitMs, retryMs }: ReadingLimits,
  read: () => Promise<T>,
): KeptReading<T> {
  let kept: { value: T; atMs: number } | null = null;
  let failedAtMs: number | null = null;
  let reading: Promise<void> | null = null;
  let isReadable = true;

  function begin(): Promise<void> {
    const atMs = clock.now().getTime();
    return read()
      .then(
        (value) => {
          kept = { value, atMs };
          failedAtMs = null;
          isReadable = true;
        },
        (err: unknown) => {
          kept = null;
          failedAtMs = clock.now().getTime();
          if (isReadable) log.warn({ err, reading: name }, "what metrics show could not be read");
          isReadable = false;
        },
      )
      .finally(() => (reading = null));
  }

  /** A clock that was set back does not keep an answer fresh for longer. */
  function isYounger(atMs: number, limitMs: number): boolean {
    const ageMs = clock.now().getTime() - atMs;
    return ageMs >= 0 && ageMs < limitMs;
  }
  const fresh = (): { value: T } | null => (kept !== null && isYounger(kept.atMs, freshMs) ? kept : null);

  return {
    isReadable: () => isReadable,
    async current() {
      const found = fresh();
      if (found !== null) return found.value;
      if (reading === null && failedAtMs !== null && isYounger(failedAtMs, retryMs)) return null;
      reading ??= begin();
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<"late">((resolve) => {
        timer = setTimeout(() => resolve("late"), waitMs);
        timer.unref();
      });
      const outcome = await Promise.race([reading, late]);
      clearTimeout(timer);
      if (outcome !== "late") return fresh()?.value ?? null;
      if (isReadable) log.warn({ reading: name, waitMs }, "what metrics show takes too long to read");
      isReadable = false;
      return null;
    },
  };
}
