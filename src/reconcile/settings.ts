import type { IdentityMode } from "./invariants/invariant.ts";

/** Settings of a run. Times in milliseconds. */
export interface ReconcileSettings {
  /**
   * A difference younger than this may still be in flight: the object is reread after this time before it counts as
   * drift.
   */
  graceMs: number;
  /** How far a run rereads what earlier runs covered. */
  overlapMs: number;
  /** The rotation reads the whole history once in this many nightly runs. */
  rotationNights: number;
  /** How long failed orders count as open items. Dunning ends well before. */
  failedHorizonMs: number;
  voidedHorizonMs: number;
  /** Tried in order; the first size that the service accepts is used. */
  pageSizes: readonly number[];
  /** After this many pages a checkpoint is written even if nothing changed. */
  pagesPerCheckpoint: number;
  /** More tombstones than this, or than this share of a run's rows, suggest a wrong key. */
  maxTombstones: number;
  maxTombstoneShare: number;
  /** Records findings and changes nothing in the mirror. */
  reportOnly: boolean;
  /** IANA name; sets the day boundaries of control sums and invariants. */
  timeZone: string;
  /** What is checked after the walk; null checks nothing. */
  checks: Readonly<CheckSettings> | null;
}

export interface CheckSettings {
  /** By name of the invariant, where its mode is not the default. */
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
