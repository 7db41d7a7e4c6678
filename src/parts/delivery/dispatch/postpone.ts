import { parseHttpDate, parseRetryAfter } from "../../../platform/http/exchange.ts";
import { isRetryLater } from "./define-handler.ts";

/** The outcome of a run whose handler threw `RetryLater`. */
export interface Postponement {
  delayMs: number;
  /** It was postponed so often that this time counts as an attempt. */
  isAttempt: boolean;
}

const [leastMs, mostMs] = [1_000, 86_400_000];
/** The shortest wait grows by a second with each time, so that a handler that always requests none is no busy loop. */
const longestLeastMs = 60_000;
/** A change that is put off more often will hardly ever be done. At the shortest waits this takes 16 hours. */
export const mostPostponements = 1_000;

/**
 * The wait of a run whose handler threw `RetryLater`, after `before` earlier postponements; null for any other thrown
 * value, and for a `RetryLater` whose time is no number: that is a failed attempt. Never throws.
 * @param now the reference for a date in `Retry-After` where the answer has none of its own
 */
export function postponementOf(thrown: unknown, before: number, now: Date): Postponement | null {
  const askedMs = askedFor(thrown, now);
  if (askedMs === null) return null;
  const least = Math.min(longestLeastMs, leastMs * (before + 1));
  return {
    delayMs: Math.min(mostMs, Math.max(least, askedMs)),
    isAttempt: before >= mostPostponements,
  };
}

function askedFor(thrown: unknown, now: Date): number | null {
  if (!isRetryLater(thrown)) return null;
  try {
    const { afterMs, answer } = thrown;
    if (typeof afterMs !== "number" || !Number.isFinite(afterMs)) return null;
    const { retryAfter = null, date = null } = answer ?? {};
    return parseRetryAfter(retryAfter, parseHttpDate(date ?? "") ?? now) ?? afterMs;
  } catch {
    // A proxy, a getter, or an answer of another form.
    return null;
  }
}
