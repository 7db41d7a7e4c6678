import { canonicalTimestamp } from "../service/timestamp.ts";

/**
 * The version of a state, as text that compares byte by byte: when the object says it changed, when it was seen
 * by a read, how far its status is in its life, and its content. Among events alone the order is total and does
 * not depend on arrival; a read settles a tie of events; a later read beats an earlier one. No local clock
 * takes part. '' is the version of what was never seen, and the lowest.
 */
export interface VersionParts {
  /** Fixed form of `canonicalTimestamp`. */
  updatedAt: string;
  /** The service's `Date` of the answer, same form; null for events. */
  observedAt: string | null;
  /** 0 to 9. */
  rank: number;
  hash: string;
}

export function versionOf({ updatedAt, observedAt, rank, hash }: VersionParts): string {
  // "-" sorts before every digit: what an event says is below what a read saw.
  return `${updatedAt}|${observedAt ?? "-"}|${rank}|${hash}`;
}

/**
 * SQL for the time until which the service is known to have been in a state, of its version: the state's change,
 * or a later look at it. Text that compares like the times; '' for what was never seen.
 */
export const seenUntil = (version: string): string =>
  `greatest(left(${version}, 27), substr(${version}, 29, 27))`;

/** `Date` has whole seconds, so only an answer dated this much later is certain to come after a change. */
const settleAfterMs = 2_000;

/** From when on an answer settles what happened at `updatedAt`. From and to the fixed form. */
export function settledFrom(updatedAt: string): string {
  const later = new Date(Date.parse(updatedAt) + settleAfterMs);
  return canonicalTimestamp(later.toISOString()) ?? updatedAt;
}

/**
 * How far a status is in the life of its object. It only decides between events with the very same
 * `updated_at`; unknown statuses stand in the middle, and a read settles what this guesses wrong.
 */
const ranks: Readonly<Record<string, number>> = {
  pending: 0,
  in_progress: 1,
  failed: 2,
  active: 3,
  succeeded: 3,
  paused: 4,
  past_due: 4,
  partially_refunded: 5,
  refund_failed: 5,
  refunded: 6,
  voided: 6,
  chargeback: 7,
  completed: 8,
  chargeback_accepted: 8,
  chargeback_dismissed: 8,
  canceled: 9,
};

export const statusRank = (status: unknown): number =>
  (typeof status === "string" && Object.hasOwn(ranks, status) ? ranks[status] : undefined) ?? 4;
