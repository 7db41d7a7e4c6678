import { setTimeout as sleepFor } from "node:timers/promises";
import { ServiceUnavailableError } from "../../core/client/service-errors.ts";
import type { Clock } from "../../platform/clock.ts";
import { TallyhookError, exitCodes } from "../../platform/errors.ts";
import type { Log } from "../../platform/log.ts";
import { counted } from "../../platform/readable-text.ts";

/** Waits after an outage, on top of the client's own repeats, which last only seconds. */
const outageWaitsMs = [5_000, 30_000] as const;

/** A service that asks for less, again and again, must not be asked without end. */
const shortestAskedMs = 5_000;

/**
 * How long the service may keep a run waiting, all its waits together. The waiting run holds the lease, so no other can
 * begin.
 */
const longestAskedMs = 600_000;

/** The service asks for a longer wait than a run takes: it ends, and is resumed after the wait. */
export class AskedToWaitError extends TallyhookError {
  override readonly exitCode = exitCodes.incomplete;
  readonly retryAfterMs: number;

  constructor(cause: ServiceUnavailableError, retryAfterMs: number) {
    const asked = counted(Math.ceil(retryAfterMs / 60_000), "minute");
    super(
      `${cause.message}. The service asks to wait ${asked}, and a run waits ${longestAskedMs / 60_000} in total. A ` +
        "nightly or ordered run is then resumed by itself, any other when its command is run again.",
      { cause },
    );
    this.retryAfterMs = retryAfterMs;
  }
}

export interface Patience {
  /**
   * Waits after the `outages`th outage in a row, for as long as the service asks. Throws `AskedToWaitError` where that
   * is too long, the error itself after the last wait, and the signal's reason.
   */
  waitAfter(error: ServiceUnavailableError, outages: number): Promise<void>;
  /** Calls `work`, and again each time that the service asked for a wait. Does not wait out an outage. */
  ask<T>(work: () => Promise<T>): Promise<T>;
}

/** Limits how long one run waits for the service. Reports each wait, with the reason. */
export function createPatience({
  clock,
  log,
  signal,
  onWait,
  sleep = async (ms) => {
    await sleepFor(ms, undefined, { signal });
  },
}: {
  clock: Clock;
  log: Log;
  signal: AbortSignal;
  onWait(ms: number, reason: string): void;
  sleep?(ms: number): Promise<void>;
}): Patience {
  let leftMs = longestAskedMs;
  let waitsUntilMs = 0;

  async function wait(error: ServiceUnavailableError, leastMs: number): Promise<void> {
    const askedMs = error.retryAfterMs === null ? 0 : Math.max(shortestAskedMs, error.retryAfterMs);
    const nowMs = clock.now().getTime();
    // Objects are read side by side: their waits are one.
    const addedMs = Math.min(askedMs, Math.max(0, nowMs + askedMs - waitsUntilMs));
    if (addedMs > leftMs) throw new AskedToWaitError(error, askedMs);
    leftMs -= addedMs;
    waitsUntilMs = Math.max(waitsUntilMs, nowMs + askedMs);
    const waitMs = Math.max(leastMs, askedMs);
    onWait(waitMs, error.message);
    log.info({ waitMs, reason: error.message }, "the run waits for the service");
    await sleep(waitMs);
  }

  return {
    async waitAfter(error, outages) {
      const leastMs = outageWaitsMs[outages - 1];
      if (leastMs === undefined) throw error;
      await wait(error, leastMs);
    },
    async ask(work) {
      for (;;) {
        try {
          return await work();
        } catch (error) {
          if (!(error instanceof ServiceUnavailableError) || error.retryAfterMs === null) throw error;
          await wait(error, 0);
        }
      }
    },
  };
}
