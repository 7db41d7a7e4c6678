import type { Knex } from "knex";
import { TallyhookError } from "../platform/errors.ts";
import { isFirstFill } from "./first-fill.ts";
import { makePlan } from "./make-plan.ts";
import { findInterrupted, openRun, reopenRun } from "./runs.ts";
import type { Run, RunKind } from "./runs.ts";
import { dayMs } from "./settings.ts";
import type { ReconcileSettings } from "./settings.ts";
import { bound } from "./slice.ts";

interface RunRequest {
  kind: RunKind;
  runKey?: string;
  rangeFrom?: Date | null;
  rangeTo?: Date | null;
}

/** A T0 of longer ago would leave out too much of what was created since. */
const takenUpWithinMs = dayMs;

/**
 * The run that was interrupted and asks for the same, else a new one with its plan. A run with a key of its own is never
 * another's. To be called under the run lock; throws `UsageError` for a range of which nothing can be known.
 */
export async function takeUpOrOpen(
  db: Knex,
  settings: ReconcileSettings,
  { kind, runKey, rangeFrom = null, rangeTo = null }: RunRequest,
  { pageSize, date }: { pageSize: number; date: Date },
): Promise<Run> {
  const { reportOnly, graceMs, rotationNights } = settings;
  const t0 = new Date(date.getTime() - graceMs);
  const wanted = { kind, t0, rangeFrom, rangeTo, reportOnly };
  if (runKey === undefined) {
    const since = new Date(date.getTime() - takenUpWithinMs);
    const interrupted = await findInterrupted(db, wanted, { since });
    if (interrupted !== null) {
      await reopenRun(db, interrupted.id);
      return interrupted;
    }
  }
  // What is only reported stays missing.
  const firstFill = !reportOnly && (await isFirstFill(db, wanted));
  const slices = await makePlan(db, settings, wanted);
  const newKey = runKey ?? `${kind}:${bound(date)}:${crypto.randomUUID()}`;
  const made = { ...wanted, runKey: newKey, firstFill, pageSize, rotationNights };
  const run = await openRun(db, made, slices);
  if (run === null) throw new TallyhookError(`The run ${newKey} was opened meanwhile. Try again.`);
  return run;
}
