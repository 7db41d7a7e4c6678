import { canonicalTimestamp } from "../contract/timestamp.ts";

/**
 * The parts of a state's version, a text that compares byte by byte: the object's `updated_at`, the `Date` of the read,
 * the rank of the status, and the hash of the content. Any two different states have different versions, so the winner
 * does not depend on the order of arrival. With one `updated_at`, a read beats an event, and a later read an earlier
 * one. No local clock takes part. The version '' is the lowest: the group was never seen.
 */
export interface VersionParts {
  /** Fixed form of `canonicalTimestamp`. */
  updatedAt: string;
  /**
   * Set for the entry of an order. `updatedAt` is then the order's, or the entry's own if later; `within` orders
   * entries with the same `updatedAt`: the entry's own time, or `updatedAt` if a read confirms the state. Same form.
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
  // "-" sorts before every digit, so an event is below a read.
  return `${changed}|${observedAt ?? "-"}|${rank}|${hash}`;
}

/** The parts of a version that is not ''; the inverse of `versionOf`. */
export function partsOfVersion(version: string): VersionParts {
  const parts = version.split("|");
  const [observedAt = "-", rank = "0", hash = ""] = parts.slice(-3);
  const [updatedAt = "", within] = parts.slice(0, -3);
  return {
    updatedAt,
    ...(within === undefined ? {} : { within }),
    observedAt: observedAt === "-" ? null : observedAt,
    rank: Number(rank),
    hash,
  };
}

/** The time at the start of a version, fixed form. */
export const timeOfVersion = (version: string): string => version.slice(0, 27);

export const hashOfVersion = (version: string): string => version.slice(-32);

/** SQL for the same. */
export const timeOfVersionSql = (version: string): string => `left(${version}, 27)`;

/** SQL for the hash at the end of a version. */
export const hashOfVersionSql = (version: string): string => `right(${version}, 32)`;

/**
 * SQL for the time until which a state is known to have held: its `updated_at`, or the `Date` of the read if later.
 * Text that compares like the times; '' for a group that was never seen.
 */
export const shownUntilSql = (version: string): string =>
  `greatest(left(${version}, 27) collate "C", substr(${version}, 29, 27))`;

/** `shownUntilSql` for a version with `within`, which is appended: it orders equal times. */
export const entryShownUntilSql = (version: string): string =>
  `greatest(left(${version}, 27) collate "C", substr(${version}, 57, 27)) || substr(${version}, 29, 27)`;

/** How far the service's clock may be ahead of the time at which a state was received. */
export const clockToleranceMs = 3_600_000;

/**
 * Whether a state seen at `seenAt` may be dated `changedAt`: no more than the tolerance in the future. Depends on the
 * two times alone, so whether a state is believed does not depend on the order of arrival. Both times in the fixed
 * form.
 */
export const isPlausibleAt = (changedAt: string, seenAt: string): boolean =>
  changedAt <= seenAt || Date.parse(changedAt) <= Date.parse(seenAt) + clockToleranceMs;

/** The latest plausible time of a state seen at `seenAt`. Takes and returns the fixed form. */
export const latestPlausible = (seenAt: string): string =>
  new Date(Date.parse(seenAt) + clockToleranceMs).toISOString().replace("Z", "000Z");

/** `Date` has whole seconds: an answer dated this much later certainly follows the change, with a second to spare. */
const confirmAfterMs = 2_000;

/** Whether an answer with this `Date` certainly follows a change at `updatedAt`. Never true for an event. */
export const isConfirmedBy = (observedAt: string | null, updatedAt: string): boolean =>
  observedAt !== null && observedAt >= confirmableFrom(updatedAt);

/** The earliest `Date` of an answer that confirms a tie at `updatedAt`. Takes and returns the fixed form. */
export function confirmableFrom(updatedAt: string): string {
  const later = new Date(Date.parse(updatedAt) + confirmAfterMs);
  return canonicalTimestamp(later.toISOString()) ?? updatedAt;
}

/**
 * The place of a status in the life of its object. Orders snapshots with equal times. Unknown statuses rank in the
 * middle. A later read corrects a wrong guess.
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
