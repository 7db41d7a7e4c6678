import type { Random } from "./random.ts";

export interface RetryPolicy {
  /** Includes the first attempt. */
  maxAttempts: number;
  /** The longest delay after the first failure; it doubles with each further one. */
  baseDelayMs: number;
  maxDelayMs: number;
}

/**
 * The wait after the `attempt`th failure (the first is 1), or null when that was the last attempt. Doubles each time;
 * the jitter takes off up to half, so that concurrent failures are not retried together.
 */
export function retryDelayMs(policy: RetryPolicy, attempt: number, random: Random): number | null {
  if (attempt >= policy.maxAttempts) return null;
  const full = Math.min(policy.maxDelayMs, policy.baseDelayMs * 2 ** Math.min(attempt - 1, 40));
  return Math.round(full * (1 - random() / 2));
}
