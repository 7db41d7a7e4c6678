import { type Html, html } from "../../../platform/html.ts";
import { durationText } from "../../../platform/readable-text.ts";
import type { PageDeps } from "../route.ts";

/**
 * Readings slower than this are kept. Sums of days and months are kept sooner: no visitor expects an own act in them.
 */
export const slowMs = { usual: 100, sums: 40 } as const;
/** Older readings are repeated in the background. */
const freshMs = 10_000;
/** Older readings are not shown: the page waits for the new one. */
const usableMs = 60_000;
/** The most answers kept, such as one for each month that was requested. */
const mostKept = 100;

/** A reading and its age in milliseconds; 0: it was read for this page. */
export interface Read<T> {
  value: T;
  ageMs: number;
}

export type SlowReads<K, T> = (
  deps: Pick<PageDeps, "clock" | "log">,
  key: K,
  read: () => Promise<T>,
) => Promise<Read<T>>;

/**
 * Caches slow readings, so that visitors neither wait for each one nor repeat it in parallel. Fast readings are
 * repeated each time; slow ones are kept for up to a minute, and a page shows their age. A key has one answer that is
 * the same for every permitted visitor. A reading that outlasts the page's time limit is ready for the next page.
 */
export function createSlowReads<K, T>(keptFromMs: number = slowMs.usual): SlowReads<K, T> {
  const kept = new Map<K, { value: T; atMs: number }>();
  const reading = new Map<K, Promise<T>>();

  /** Joins the reading in progress, if there is one. */
  function readOnce({ clock }: Pick<PageDeps, "clock">, key: K, read: () => Promise<T>) {
    const joined = reading.get(key);
    if (joined !== undefined) return joined;
    const began = (async () => {
      const beganMs = clock.now().getTime();
      const value = await read();
      // Its age counts from its start: later changes may be missing.
      kept.delete(key);
      if (kept.size >= mostKept) kept.clear();
      if (clock.now().getTime() - beganMs >= keptFromMs) kept.set(key, { value, atMs: beganMs });
      return value;
    })().finally(() => reading.delete(key));
    reading.set(key, began);
    return began;
  }

  return async (deps, key, read) => {
    const known = kept.get(key);
    const ageMs = known === undefined ? Infinity : deps.clock.now().getTime() - known.atMs;
    // A clock that was set back gives no valid age.
    if (known === undefined || ageMs < 0 || ageMs >= usableMs) {
      return { value: await readOnce(deps, key, read), ageMs: 0 };
    }
    if (ageMs >= freshMs) {
      readOnce(deps, key, read).catch((err: unknown) =>
        deps.log.warn({ err }, "what a page keeps could not be read again"),
      );
    }
    return { value: known.value, ageMs };
  };
}

/** The age from which a page mentions it. */
const shownFromMs = 3_000;

/** The age, where it is worth a mention. */
export const ageHint = (ageMs: number): Html | null =>
  ageMs < shownFromMs
    ? null
    : html`<p class="hint">
        As it was ${ageMs < 60_000 ? `${Math.floor(ageMs / 1_000)} seconds` : durationText(ageMs)} ago.
      </p>`;
