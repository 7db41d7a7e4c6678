import type { Random } from "../../platform/random.ts";
import { type RetryPolicy, retryDelayMs } from "../../platform/retry-delay.ts";

export type FailedCallAttempt =
  | { kind: "answer"; status: number; code: string | null; retryAfterMs: number | null }
  /** A refused or cut connection, a time-out, an unreadable answer: the outcome at the service is unknown. */
  | { kind: "no_answer" };

export type RetryFacts = {
  failed: FailedCallAttempt;
  /** Reads, and writes that carry an idempotency key. */
  repeatable: boolean;
  /** Attempts made so far, at least 1. */
  attempt: number;
  /** Time left until the deadline of the whole call. */
  remainingMs: number;
};

/** `afterMs` without a retry: the wait that the service asked for, if it did. */
export type RetryDecision = { retry: true; afterMs: number } | { retry: false; afterMs: number | null };

/** Codes that make a repeat safe and useful, whatever the status. */
const transientCodes: ReadonlySet<string> = new Set([
  "gateway_error",
  "internal_error",
  "service_unavailable",
  "request_in_progress",
  "rate_limit_exceeded",
  "global_rate_limit_exceeded",
  "too_many_requests",
]);

/**
 * Decides whether, and after how long, a failed attempt is repeated: after `Retry-After` where the answer has it, else
 * with exponential backoff. 429, 5xx, lost answers and the codes above are repeated. Any other 4xx and 501 never are,
 * nor is a write without an idempotency key, nor anything beyond the deadline. These are the interface's rules for
 * clients. Pure but for the given random numbers.
 */
export function decideRetry(random: Random, facts: RetryFacts, policy: Readonly<RetryPolicy>): RetryDecision {
  const { failed, attempt, remainingMs } = facts;
  const askedMs = failed.kind === "answer" ? failed.retryAfterMs : null;
  const backoffMs = retryDelayMs(policy, attempt, random);
  if (!facts.repeatable || !isTransient(failed) || backoffMs === null) {
    return { retry: false, afterMs: askedMs };
  }
  const afterMs = askedMs === null ? backoffMs : askedMs + jitterMs(random, askedMs);
  return afterMs < remainingMs ? { retry: true, afterMs } : { retry: false, afterMs: askedMs };
}

function isTransient(failed: FailedCallAttempt): boolean {
  if (failed.kind === "no_answer") return true;
  if (failed.code !== null && transientCodes.has(failed.code)) return true;
  return failed.status === 429 || (failed.status >= 500 && failed.status !== 501);
}

/** Never earlier than asked; later by up to a tenth, or by up to a quarter of a second if that is more. */
function jitterMs(random: Random, askedMs: number): number {
  return Math.round(random() * Math.max(250, askedMs / 10));
}
