import { type Html, html } from "../../../platform/html.ts";
import { durationText } from "../../../platform/readable-text.ts";
import type { PageDeps } from "../route.ts";

/** What took so long to read is kept. Sums of days and months are kept sooner: nobody sees an act of theirs in them. */
export const slowMs = { usual: 100, sums: 40 } as const;
/** What is older is read again, beside the page that shows it. */
const freshMs = 10_000;
/** What is older is not shown: the page waits for the new one. */
const usableMs = 60_000;
/** Answers, such as one for each month that somebody asks for. */
const mostKept = 100;

/** What was read, and how old it is in milliseconds; 0: it was read for this page. */
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
 * Keeps what is slow to read, so that it neither keeps everybody waiting nor is read by twenty people at once. What is
 * read quickly is read each time; what is slow is kept for up to a minute, and a page says how old it is. A key stands
 * for one answer that is the same to all who may see it. What outlasts the patience of a page is there for the next.
 */
export function createSlowReads<K, T>(keptFromMs: number = slowMs.usual): SlowReads<K, T> {
  const kept = new Map<K, { value: T; atMs: number }>();
  const reading = new Map<K, Promise<T>>();

  /** Joins the reading that goes on, if there is one. */
  function readOnce({ clock }: Pick<PageDeps, "clock">, key: K, read: () => Promise<T>) {
    const joined = reading.get(key);
    if (joined !== undefined) return joined;
    const began = (async () => {
      const beganMs = clock.now().getTime();
      const value = await read();
      // Its age counts from the beginning: what happened since then may be missing.
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
    // A clock that was set back says nothing of an age.
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

/** What is younger goes without saying. */
const shownFromMs = 3_000;

/** How old something is, where that is worth saying. */
export const ageHint = (ageMs: number): Html | null =>
  ageMs < shownFromMs
    ? null
    : html`<p class="hint">
        As it was ${ageMs < 60_000 ? `${Math.floor(ageMs / 1_000)} seconds` : durationText(ageMs)} ago.
      </p>`;
