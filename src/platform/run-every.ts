import type { Log } from "./log.ts";

export interface Loop {
  /** Runs the next round now, or right after the current one. */
  nudge(): void;
  /**
   * Milliseconds since the last round ended, reported progress, or the loop was created. Clock changes do not affect
   * it.
   */
  sinceProgressMs(): number;
  /** Starts no further round and waits for the current one. */
  close(): Promise<void>;
}

/**
 * Repeats a task without overlap: `intervalMs` after the last round ended, or immediately while the task returns that
 * there is more work. A round that throws is logged and counts as one without more work. A task with long rounds calls
 * `reportProgress` after each of its steps, to show that it does not hang.
 */
export function runEvery(
  { log, name }: { log: Log; name: string },
  intervalMs: number,
  task: (reportProgress: () => void) => Promise<{ more: boolean }>,
): Loop {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | null = null;
  let isNudged = false;
  let isClosed = false;
  let lastProgressMs = performance.now();
  const reportProgress = () => void (lastProgressMs = performance.now());

  async function round(): Promise<void> {
    let more = false;
    try {
      ({ more } = await task(reportProgress));
    } catch (err) {
      log.warn({ err, loop: name }, "a round failed");
    }
    running = null;
    reportProgress();
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
    sinceProgressMs: () => performance.now() - lastProgressMs,
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await running;
    },
  };
}
