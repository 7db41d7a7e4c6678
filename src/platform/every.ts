import type { Clock } from "./clock.ts";
import type { Log } from "./log.ts";

export interface Loop {
  /** Runs the next round at once, or right after the one at work. */
  nudge(): void;
  /** When the last round ended, on the clock that was given; null before the first did. */
  lastRoundAt(): Date | null;
  /** Starts no further round, waits for the one at work. */
  close(): Promise<void>;
}

/**
 * Runs a task again and again, never twice at once: `intervalMs` after the last round ended, or at once while
 * the task says that there is more. A round that throws is logged and counts as one without more.
 */
export function runEvery(
  { log, clock, name }: { log: Log; clock: Clock; name: string },
  intervalMs: number,
  task: () => Promise<{ more: boolean }>,
): Loop {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | null = null;
  let isNudged = false;
  let isClosed = false;
  let lastRoundAt: Date | null = null;

  async function round(): Promise<void> {
    let more = false;
    try {
      ({ more } = await task());
    } catch (err) {
      log.warn({ err, loop: name }, "a round failed");
    }
    running = null;
    lastRoundAt = clock.now();
    if (isClosed) return;
    const delayMs = more || isNudged ? 0 : intervalMs;
    isNudged = false;
    schedule(delayMs);
  }

  function schedule(delayMs: number): void {
    clearTimeout(timer);
    timer = setTimeout(() => {
      running = round();
    }, delayMs);
  }

  schedule(0);
  return {
    nudge() {
      if (isClosed) return;
      if (running === null) schedule(0);
      else isNudged = true;
    },
    lastRoundAt: () => lastRoundAt,
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await running;
    },
  };
}
