import type { IdentityMode } from "./invariants/invariant.ts";

/** How a run reconciles. Times in milliseconds. */
export interface ReconcileSettings {
  /** What is younger may still be in flight: read again after so long before it is called drift. */
  graceMs: number;
  /** How far a run reads back into what was covered before. */
  overlapMs: number;
  /** All history is read once in so many nights. */
  rotationNights: number;
  /** Failed orders are open items for so long: dunning ends well before. */
  failedHorizonMs: number;
  voidedHorizonMs: number;
  /** Asked for in turn; the first that the service takes is used. */
  pageSizes: readonly number[];
  /** A checkpoint without changes is written every so many pages. */
  pagesPerCheckpoint: number;
  /** More tombstones than this, or than this share of a run's rows, look like a wrong key. */
  maxTombstones: number;
  maxTombstoneShare: number;
  /** Finds and does not change. */
  reportOnly: boolean;
  /** IANA: cuts the days of control sums and identities. */
  timeZone: string;
  /** What is checked after the walk; null: nothing. */
  checks: Readonly<CheckSettings> | null;
}

export interface CheckSettings {
  /** Of identities, by name, where they differ from their own. */
  identityModes: Readonly<Record<string, IdentityMode>>;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
export const dayMs = 24 * hourMs;

/** Source: the design of the nightly run (docs/architecture.md, Reconciliation). */
export const defaultReconcileSettings: ReconcileSettings = {
  graceMs: 10 * minuteMs,
  overlapMs: dayMs,
  rotationNights: 30,
  failedHorizonMs: 45 * dayMs,
  voidedHorizonMs: 14 * dayMs,
  pageSizes: [500, 250, 100, 50, 25, 10],
  pagesPerCheckpoint: 10,
  maxTombstones: 20,
  maxTombstoneShare: 0.005,
  reportOnly: false,
  timeZone: "UTC",
  checks: null,
};
