import { canonicalTimestamp } from "../contract/timestamp.ts";

/**
 * The version of a state, as text that compares byte by byte: when the object says it changed, when it was seen
 * by a read, how far its status is in its life, and its content. Among events alone the order is total and does
 * not depend on arrival; a read settles a tie of events; a later read beats an earlier one. No local clock
 * takes part. '' is the version of what was never seen, and the lowest.
 */
export interface VersionParts {
  /** Fixed form of `canonicalTimestamp`. */
  updatedAt: string;
  /**
   * For what another object carries, whose `updated_at` is the one above: until when the state itself is known to
   * be the last one, same form. It decides between two looks at an `updatedAt`.
   */
  within?: string | undefined;
  /** The service's `Date` of the answer, same form; null for events. */
  observedAt: string | null;
  /** 0 to 9. */
  rank: number;
  hash: string;
}

export function versionOf({ updatedAt, within, observedAt, rank, hash }: VersionParts): string {
  const changed = within === undefined ? updatedAt : `${updatedAt}|${within}`;
  // "-" sorts before every digit: what an event says is below what a read saw.
  return `${changed}|${observedAt ?? "-"}|${rank}|${hash}`;
}

/** The time that orders a version before all else, fixed form. */
export const timeOfVersion = (version: string): string => version.slice(0, 27);

/**
 * SQL for the time until which the service is known to have been in a state, of its version: the state's change,
 * or a later look at it. Text that compares like the times; '' for what was never seen.
 */
export const seenUntil = (version: string): string =>
  `greatest(left(${version}, 27) collate "C", substr(${version}, 29, 27))`;

/** The same of a version that has a `within`, with the `within` at its end, which decides between equal ones. */
export const seenUntilWithin = (version: string): string =>
  `greatest(left(${version}, 27) collate "C", substr(${version}, 57, 27)) || substr(${version}, 29, 27)`;

/** By how much the clocks of service and receiver may differ, and what is under way be late. */
export const clockToleranceMs = 3_600_000;

/**
 * Whether a state that was seen at `seenAt` may be of this time: nobody can tell of what has not been yet. It is a
 * matter of the two times alone, whatever arrived before, so that to believe a state or not is no matter of order.
 * Fixed form.
 */
export const isPlausibleAt = (changedAt: string, seenAt: string): boolean =>
  changedAt <= seenAt || Date.parse(changedAt) <= Date.parse(seenAt) + clockToleranceMs;

/** The latest time that what was seen at `seenAt` can be of. From and to the fixed form. */
export const latestPlausible = (seenAt: string): string =>
  new Date(Date.parse(seenAt) + clockToleranceMs).toISOString().replace("Z", "000Z");

/** `Date` has whole seconds, so only an answer dated this much later is certain to come after a change. */
const settleAfterMs = 2_000;

/** Whether an answer of this `Date` is certain to come after a change at `updatedAt`; what events say never is. */
export const isSettledBy = (observedAt: string | null, updatedAt: string): boolean =>
  observedAt !== null && observedAt >= settledFrom(updatedAt);

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
