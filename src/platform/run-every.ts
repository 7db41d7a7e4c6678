import type { Log } from "./log.ts";

export interface Loop {
  /** Runs the next round at once, or right after the one at work. */
  nudge(): void;
  /** Milliseconds since the last round ended, or said that it goes on, or the loop was made. No clock change moves it. */
  quietMs(): number;
  /** Starts no further round, waits for the one at work. */
  close(): Promise<void>;
}

/**
 * Runs a task again and again, never twice at once: `intervalMs` after the last round ended, or at once while
 * the task says that there is more. A round that throws is logged and counts as one without more. A task whose rounds
 * may be long says with `goesOn`, after each of its steps, that it does not hang.
 */
export function runEvery(
  { log, name }: { log: Log; name: string },
  intervalMs: number,
  task: (goesOn: () => void) => Promise<{ more: boolean }>,
): Loop {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | null = null;
  let isNudged = false;
  let isClosed = false;
  let lastSignMs = performance.now();
  const goesOn = () => void (lastSignMs = performance.now());

  async function round(): Promise<void> {
    let more = false;
    try {
      ({ more } = await task(goesOn));
    } catch (err) {
      log.warn({ err, loop: name }, "a round failed");
    }
    running = null;
    goesOn();
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
    quietMs: () => performance.now() - lastSignMs,
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await running;
    },
  };
}
