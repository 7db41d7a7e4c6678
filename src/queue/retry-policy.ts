import type { Random } from "../platform/random.ts";

export interface RetryPolicy {
  maxAttempts: number;
  baseDelayMs: number;
  maxDelayMs: number;
}

/** About 1 s, 2 s, 4 s … 1 h: the last of 16 attempts comes after some five hours. */
export const eventRetryPolicy: RetryPolicy = {
  maxAttempts: 16,
  baseDelayMs: 1_000,
  maxDelayMs: 3_600_000,
};

/** Reads of the service go on for as long as it takes: the object is not lost, it is only late. */
export const fetchRetryPolicy: RetryPolicy = {
  maxAttempts: Number.POSITIVE_INFINITY,
  baseDelayMs: 1_000,
  maxDelayMs: 600_000,
};

/** A message that its channel did not take, though it takes others. It is given up by its age (alerts/delivery-outcome.ts). */
export const alertRetryPolicy: RetryPolicy = {
  maxAttempts: Number.POSITIVE_INFINITY,
  baseDelayMs: 1_000,
  maxDelayMs: 60_000,
};

/**
 * How long a channel of alerts that takes nothing is left alone. With two probes of 15 s each that hang, it is asked again
 * within a minute.
 */
export const channelPausePolicy: RetryPolicy = {
  maxAttempts: Number.POSITIVE_INFINITY,
  baseDelayMs: 1_000,
  maxDelayMs: 25_000,
};

/**
 * How long to wait after the `attempt`th failure (the first is 1), or null when that was the last. Doubles each
 * time; the jitter takes up to half away, so that what failed together does not come back together.
 */
export function retryDelayMs(policy: RetryPolicy, attempt: number, random: Random): number | null {
  if (attempt >= policy.maxAttempts) return null;
  const full = Math.min(policy.maxDelayMs, policy.baseDelayMs * 2 ** Math.min(attempt - 1, 40));
  return Math.round(full * (1 - random() / 2));
}
