import type { Random } from "../platform/random.ts";

/** How one try ended, other than well. */
export type FailedTry =
  | { kind: "answer"; status: number; code: string | null; retryAfterMs: number | null }
  /** Refused or cut connection, time-out, unreadable answer: what happened there is unknown. */
  | { kind: "no_answer" };

export type RetryPolicy = {
  maxAttempts: number;
  /** The wait after the first failure; it doubles with every further one. */
  baseDelayMs: number;
  maxDelayMs: number;
};

export type RetryFacts = {
  failed: FailedTry;
  /** Reads, and writes that carry an idempotency key. */
  repeatable: boolean;
  /** Tries made so far, at least 1. */
  attempt: number;
  /** Until the deadline of the whole call. */
  remainingMs: number;
};

/** `afterMs` without a retry: when a later call may be worth while, if the service said so. */
export type RetryDecision =
  { retry: true; afterMs: number } | { retry: false; afterMs: number | null };

/** Codes that say a repeat is safe and may help, whatever the status (spec, Errors, Codes). */
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
 * Whether, and after how long, a failed try is repeated: 429 after its `Retry-After`, 5xx and lost
 * answers with exponential backoff, any other 4xx and 501 never, a write never without its
 * idempotency key, nothing beyond the deadline. Pure but for the given random number.
 *
 * Source: spec, Client handling rules.
 */
export function decideRetry(
  random: Random,
  facts: RetryFacts,
  policy: Readonly<RetryPolicy>,
): RetryDecision {
  const { failed, attempt, remainingMs } = facts;
  const askedMs = failed.kind === "answer" ? failed.retryAfterMs : null;
  if (!facts.repeatable || !isTransient(failed) || attempt >= policy.maxAttempts) {
    return { retry: false, afterMs: askedMs };
  }
  const afterMs =
    askedMs === null ? backoffMs(random, attempt, policy) : askedMs + jitterMs(random, askedMs);
  return afterMs < remainingMs ? { retry: true, afterMs } : { retry: false, afterMs: askedMs };
}

function isTransient(failed: FailedTry): boolean {
  if (failed.kind === "no_answer") return true;
  if (failed.code !== null && transientCodes.has(failed.code)) return true;
  return failed.status === 429 || (failed.status >= 500 && failed.status !== 501);
}

/** Between half of the doubled delay and all of it. */
function backoffMs(random: Random, attempt: number, policy: Readonly<RetryPolicy>): number {
  const ceiling = Math.min(policy.maxDelayMs, policy.baseDelayMs * 2 ** (attempt - 1));
  return Math.round(ceiling * (0.5 + random() / 2));
}

/** Only ever later than asked: up to a tenth, at least up to a quarter of a second. */
function jitterMs(random: Random, askedMs: number): number {
  return Math.round(random() * Math.max(250, askedMs / 10));
}
