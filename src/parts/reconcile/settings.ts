import type { InvariantMode } from "./invariants/invariant.ts";

/** Settings of a run. Times in milliseconds. */
export interface ReconcileSettings {
  /**
   * The event of a younger difference may still be on its way: such an object is read again after this time, before it
   * counts as drift.
   */
  graceMs: number;
  /** How far a run rereads the range of earlier runs. */
  overlapMs: number;
  /** The rotation reads the whole history once in this many nightly runs. */
  rotationNights: number;
  /** How long after its creation a failed order counts as an open item. Dunning ends well before. */
  failedHorizonMs: number;
  /** How long after its creation a sale is expected to be voided. */
  voidedHorizonMs: number;
  /** Tried in order; the first size that the service accepts is used. */
  pageSizes: readonly number[];
  /** After this many pages a checkpoint is written even if nothing changed. */
  pagesPerCheckpoint: number;
  /** More objects unknown at the service than the larger of this and this share of a run's rows suggest a wrong key. */
  maxTombstones: number;
  maxTombstoneShare: number;
  /** Records findings and changes nothing in the mirror. */
  reportOnly: boolean;
  /** IANA name; sets the day boundaries of control sums and invariants. */
  timeZone: string;
  /** Checks after the walk; null: none. */
  checks: Readonly<CheckSettings> | null;
}

export interface CheckSettings {
  /** Keyed by name of the invariant; the others have their default mode. */
  invariantModes: Readonly<Record<string, InvariantMode>>;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
export const dayMs = 24 * hourMs;

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
