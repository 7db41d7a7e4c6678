import { setTimeout as sleep } from "node:timers/promises";

export interface EventuallyOptions {
  withinMs?: number;
  everyMs?: number;
}

/**
 * For conditions without a signal: polls until the answer is neither `false`, `null` nor `undefined`, and gives it
 * back. An answer that throws counts as none. Rejects at the deadline with the condition and the last failure.
 */
export async function eventually<T>(
  what: string,
  ask: () => Promise<T> | T,
  { withinMs = 60_000, everyMs = 20 }: EventuallyOptions = {},
): Promise<Exclude<T, false | null | undefined | void>> {
  const deadlineMs = performance.now() + withinMs;
  for (;;) {
    let failure: unknown;
    try {
      const answer = await ask();
      if (answer !== false && answer !== null && answer !== undefined) {
        return answer as Exclude<T, false | null | undefined | void>;
      }
    } catch (error) {
      failure = error;
    }
    if (performance.now() > deadlineMs) {
      throw new Error(`not within ${withinMs} ms: ${what}`, { cause: failure });
    }
    await sleep(everyMs);
  }
}
