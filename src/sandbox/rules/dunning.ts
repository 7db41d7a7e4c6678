import { dayMs } from "./billing-dates.ts";

/**
 * When a declined renewal is tried next: `retryDays` are days after the first decline of the cycle.
 * Null after the last attempt. `attempts` is how many were made, at least 1.
 */
export function nextRetryAt(
  firstDeclinedAt: Date,
  attempts: number,
  retryDays: readonly number[],
): Date | null {
  const days = retryDays[attempts - 1];
  return days === undefined ? null : new Date(firstDeclinedAt.getTime() + days * dayMs);
}
