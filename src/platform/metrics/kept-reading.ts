import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";

/** How old an answer may be, and how long one is waited for, in milliseconds. */
export interface ReadingLimits {
  freshMs: number;
  waitMs: number;
}

export interface KeptReading<T> {
  /**
   * What was read at most `freshMs` ago; null where it could not be read in `waitMs`. Many who ask at once share one
   * reading, and one that hangs is never begun a second time.
   */
  current(): Promise<T | null>;
  /** Whether the last reading succeeded in time. True before the first. */
  isReadable(): boolean;
}

/** Keeps what is expensive to read, so that scrapes cost the same however many there are. Never throws. */
export function createKeptReading<T>(
  { log, clock, name }: { log: Log; clock: Clock; name: string },
  { freshMs, waitMs }: ReadingLimits,
  read: () => Promise<T>,
): KeptReading<T> {
  let kept: { value: T; atMs: number } | null = null;
  let reading: Promise<void> | null = null;
  let isReadable = true;

  function begin(): Promise<void> {
    const atMs = clock.now().getTime();
    return read()
      .then(
        (value) => {
          kept = { value, atMs };
          isReadable = true;
        },
        (err: unknown) => {
          kept = null;
          if (isReadable) log.warn({ err, reading: name }, "what metrics show could not be read");
          isReadable = false;
        },
      )
      .finally(() => (reading = null));
  }

  /** A clock that was set back makes nothing fresh for longer. */
  function fresh(): { value: T } | null {
    if (kept === null) return null;
    const ageMs = clock.now().getTime() - kept.atMs;
    return ageMs >= 0 && ageMs < freshMs ? kept : null;
  }

  return {
    isReadable: () => isReadable,
    async current() {
      const found = fresh();
      if (found !== null) return found.value;
      reading ??= begin();
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<"late">((resolve) => {
        timer = setTimeout(() => resolve("late"), waitMs);
        timer.unref();
      });
      const outcome = await Promise.race([reading, late]);
      clearTimeout(timer);
      if (outcome !== "late") return fresh()?.value ?? null;
      if (isReadable)
        log.warn({ reading: name, waitMs }, "what metrics show takes too long to read");
      isReadable = false;
      return null;
    },
  };
}
