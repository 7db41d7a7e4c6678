import type { Knex } from "knex";
import type { Resource } from "../mirror/observation.ts";
import { coveredUntil } from "./coverage.ts";
import { mirrorTableOf } from "./mirror-tables.ts";
import { answeredRange, planFull, planNightly, planRange, windowStart } from "./plan.ts";
import { rotationPart, rotationState } from "./rotation.ts";
import type { RotationPart } from "./rotation.ts";
import type { RunKind } from "./runs.ts";
import type { ReconcileSettings } from "./settings.ts";
import { slicedResources } from "./slice.ts";
import type { Slice } from "./slice.ts";

export interface WantedRun {
  kind: RunKind;
  t0: Date;
  rangeFrom: Date | null;
  rangeTo: Date | null;
}

/** The plan of a run, as data. A night before which nothing was read whole reads everything. Only reads. */
export async function makePlan(
  db: Knex,
  settings: ReconcileSettings,
  { kind, t0, rangeFrom, rangeTo }: WantedRun,
): Promise<Slice[]> {
  if (kind === "range") {
    const { from, before } = answeredRange({ t0, rangeFrom, rangeTo });
    return planRange(from, before);
  }
  if (kind !== "nightly") return planFull(t0);
  const until = await coveredUntil(db, t0);
  if (until === null) return planFull(t0);
  const rotation = await rotationParts(db, settings, { t0, coveredUntil: until });
  return rotation === null
    ? planFull(t0)
    : planNightly({ t0, coveredUntil: until, rotation }, settings);
}

async function rotationParts(
  db: Knex,
  settings: ReconcileSettings,
  facts: { t0: Date; coveredUntil: Date },
): Promise<Record<Resource, RotationPart | null> | null> {
  const windowFrom = windowStart(facts, settings);
  const parts: Partial<Record<Resource, RotationPart | null>> = {};
  for (const resource of slicedResources) {
    const state = await rotationState(db, resource);
    if (state === null) return null;
    const wanted = { resource, t0: facts.t0, windowFrom };
    parts[resource] = await rotationPart(db, wanted, state, settings.rotationNights);
  }
  return parts as Record<Resource, RotationPart | null>;
}

export interface EstimatedSlice {
  slice: Slice;
  rows: number;
  calls: number;
}

/** How many rows and calls a plan should cost, by what the mirror holds now. One statement a slice. */
export async function estimatePlan(
  db: Knex,
  slices: readonly Slice[],
  pageSize: number,
): Promise<EstimatedSlice[]> {
  const estimated: EstimatedSlice[] = [];
  for (const slice of slices) {
    const rows = await expectedRows(db, slice);
    estimated.push({ slice, rows, calls: Math.max(1, Math.ceil(rows / pageSize)) });
  }
  return estimated;
}

async function expectedRows(db: Knex, slice: Slice): Promise<number> {
  const query = db(`mirror.${mirrorTableOf[slice.resource]}`);
  if (slice.createdFrom !== null) void query.where("created_at", ">=", slice.createdFrom);
  if (slice.createdBefore !== null) void query.where("created_at", "<", slice.createdBefore);
  for (const column of ["status", "type"]) {
    const value = slice.filter[column];
    if (value !== undefined) void query.where(column, value);
  }
  const [counted] = await query.count<{ n: string }[]>("* as n");
  return Number(counted?.n ?? 0);
}
