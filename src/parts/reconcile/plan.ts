import type { Knex } from "knex";
import type { Resource } from "../../core/mirror/snapshot.ts";
import { UsageError } from "../../platform/errors.ts";
import { type Gap, coveredUntil, staleGaps } from "./coverage/coverage.ts";
import { type Slice, boundText, isListedByDate, mirrorTableOf, slice, slicedResources } from "./coverage/slice.ts";
import type { RunKind } from "./runs/runs.ts";
import { type ReconcileSettings, dayMs } from "./settings.ts";

export interface RequestedRun {
  kind: RunKind;
  t0: Date;
  rangeFrom: Date | null;
  rangeTo: Date | null;
}

/**
 * The plan of a run, as data. A nightly run reads everything if no run was ever complete. It begins with the parts
 * whose reads stop counting before the next night. Only reads.
 */
export async function makePlan(
  db: Knex,
  settings: ReconcileSettings,
  { kind, t0, rangeFrom, rangeTo }: RequestedRun,
): Promise<Slice[]> {
  if (kind === "range") {
    const { from, before } = answeredRange({ t0, rangeFrom, rangeTo });
    return planRange(from, before);
  }
  if (kind !== "nightly") return planFull(t0);
  const until = await coveredUntil(db, t0);
  if (until === null) return planFull(t0);
  const history = await historyParts(db, settings, { t0, coveredUntil: until });
  return history === null ? planFull(t0) : planNightly({ t0, coveredUntil: until, history }, settings);
}

async function historyParts(
  db: Knex,
  settings: ReconcileSettings,
  facts: { t0: Date; coveredUntil: Date },
): Promise<Record<Resource, HistoryParts> | null> {
  const windowFrom = windowStart(facts, settings);
  const gaps = await staleGaps(db, { until: windowFrom, countForMs: dayMs });
  const parts: Partial<Record<Resource, HistoryParts>> = {};
  for (const resource of slicedResources) {
    const state = await rotationState(db, resource);
    if (state === null) return null;
    const wanted = { resource, t0: facts.t0, windowFrom };
    const rotation = await rotationPart(db, wanted, state, settings.rotationNights);
    const own = gaps.filter((gap) => gap.resource === resource);
    parts[resource] = withStale({ resource, windowFrom, rotation }, own);
  }
  return parts as Record<Resource, HistoryParts>;
}

export interface EstimatedSlice {
  slice: Slice;
  rows: number;
  calls: number;
}

/** Estimates rows and calls of a plan from the mirror's present content. One statement a slice. */
export async function estimatePlan(db: Knex, slices: readonly Slice[], pageSize: number): Promise<EstimatedSlice[]> {
  const estimated: EstimatedSlice[] = [];
  for (const slice of slices) {
    const rows = await expectedRows(db, slice);
    estimated.push({ slice, rows, calls: Math.max(1, Math.ceil(rows / pageSize)) });
  }
  return estimated;
}

async function expectedRows(db: Knex, slice: Slice): Promise<number> {
  const query = db(`mirror.${mirrorTableOf(slice.resource)}`);
  if (slice.createdFrom !== null) void query.where("created_at", ">=", slice.createdFrom);
  if (slice.createdBefore !== null) void query.where("created_at", "<", slice.createdBefore);
  for (const column of ["status", "type"]) {
    const value = slice.filter[column];
    if (value !== undefined) void query.where(column, value);
  }
  const [counted] = await query.count<{ n: string }[]>("* as n");
  return Number(counted?.n ?? 0);
}

/** The facts from which a nightly run is planned. */
export interface NightlyFacts {
  t0: Date;
  /** The end of contiguous coverage, not the T0 of the last run that started. */
  coveredUntil: Date;
  history: Readonly<Record<Resource, HistoryParts>>;
}

/** The parts of a resource's history that a nightly run reads before its window. */
interface HistoryParts {
  /** Parts whose reads are too old to count. */
  stale: readonly RotationPart[];
  /** The part that is due in this run; null where none is. */
  rotation: RotationPart | null;
}

type Horizons = Pick<ReconcileSettings, "overlapMs" | "failedHorizonMs" | "voidedHorizonMs">;

/**
 * Adds what has gone stale to the part that is due, once: what that part reads is left to it. Nights that were left out
 * do this, and clocks that disagree. A list that is stale as a whole, or cannot be read in part, is read whole, and its
 * cycle begins again.
 */
function withStale(
  { resource, windowFrom, rotation }: { resource: Resource; windowFrom: string; rotation: RotationPart | null },
  gaps: readonly Gap[],
): HistoryParts {
  const [first] = gaps;
  if (first === undefined) return { stale: [], rotation };
  const isWhole = first.from === null && first.before === windowFrom;
  if (isWhole || !isListedByDate(resource)) {
    return { stale: [{ from: null, before: windowFrom, closesCycle: true }], rotation: null };
  }
  const stale = gaps.flatMap(({ from, before }) => {
    const end = before ?? windowFrom;
    const isDue =
      rotation !== null &&
      (rotation.from === null || (from !== null && from >= rotation.from)) &&
      end <= rotation.before;
    return isDue ? [] : [{ from, before: end, closesCycle: false }];
  });
  return { stale, rotation };
}

/**
 * The slices of a nightly run, in the order in which they are walked: stale parts, new objects, open objects by status,
 * a part of all history, and that part of the orders once more in the other direction. Objects that they do not show
 * are read by id afterwards (`recheckUnread`).
 */
function planNightly(facts: NightlyFacts, horizons: Horizons): Slice[] {
  const from = windowStart(facts, horizons);
  const stale = slicedResources.flatMap((resource) =>
    facts.history[resource].stale.map((part) => staleSlice(resource, part)),
  );
  const rotation = slicedResources.flatMap((resource) => {
    const part = facts.history[resource].rotation;
    return part === null ? [] : [rotationSlice(resource, part)];
  });
  const orders = rotation.find(({ resource }) => resource === "order");
  return [
    ...stale,
    ...windowSlices(from, boundText(facts.t0)),
    ...statusSlices(facts.t0, horizons),
    ...rotation,
    ...(orders === undefined ? [] : [orderCheck(orders)]),
  ];
}

/** The window begins `overlapMs` before the end of the covered span. */
const windowStart = (
  { coveredUntil }: Pick<NightlyFacts, "coveredUntil">,
  { overlapMs }: Pick<Horizons, "overlapMs">,
): string => boundText(new Date(coveredUntil.getTime() - overlapMs));

/** Everything from the first record to T0, in one slice per resource. */
const planFull = (t0: Date): Slice[] =>
  slicedResources.map((resource) =>
    slice({
      step: "all",
      resource,
      createdBefore: boundText(t0),
      isClosed: true,
      closesCycle: true,
      reason: "everything from the first record on",
    }),
  );

/**
 * The part of a range that a run can answer for: it cannot know what is created from T0 on. Throws `UsageError` where
 * none of it remains.
 */
export function answeredRange({ t0, rangeFrom, rangeTo }: { t0: Date; rangeFrom: Date | null; rangeTo: Date | null }): {
  from: Date;
  before: Date;
} {
  const from = rangeFrom ?? new Date(0);
  const before = rangeTo === null || rangeTo > t0 ? t0 : rangeTo;
  if (from < before) return { from, before };
  throw new UsageError(
    `The range from ${from.toISOString()} on is too recent: a run answers for what was created before ` +
      `${t0.toISOString()} (the service's time less RECONCILE_GRACE_SECONDS). Choose an earlier --from, or run later.`,
  );
}

/** Everything created in a range. */
const planRange = (from: Date, to: Date): Slice[] =>
  slicedResources.map((resource) =>
    slice({
      step: "range",
      resource,
      createdFrom: boundText(from),
      createdBefore: boundText(to),
      isClosed: true,
      reason: "created in the range asked for",
    }),
  );

/** Window slices that embed more, or have their own reason. */
const windows: Partial<Record<Resource, { reason: string; expand?: string }>> = {
  transaction: {
    expand: "order",
    reason: "refunds and declined retries add transactions to orders of any age",
  },
  subscription: { reason: "new subscriptions, also failed ones" },
};

const windowSlices = (createdFrom: string, createdBefore: string): Slice[] =>
  slicedResources.map((resource) =>
    slice({
      step: "window",
      createdFrom,
      createdBefore,
      isClosed: true,
      resource,
      reason: `new ${mirrorTableOf(resource)}`,
      ...windows[resource],
    }),
  );

/** Lists by status: changes of older objects, which the window does not show. */
function statusSlices(t0: Date, { failedHorizonMs, voidedHorizonMs }: Horizons): Slice[] {
  const ago = (ms: number) => boundText(new Date(t0.getTime() - ms));
  const byStatus = (status: string, reason: string) =>
    slice({ step: "status", resource: "transaction", filter: { status }, expand: "order", reason });
  const live = (status: string) =>
    slice({
      step: "status",
      resource: "subscription",
      filter: { status },
      reason: "renewals, declines and new cards of live subscriptions",
    });
  return [
    byStatus("chargeback", "a chargeback is a status of the old sale"),
    byStatus("pending", "open transactions"),
    byStatus("in_progress", "open transactions"),
    slice({
      step: "status",
      resource: "transaction",
      filter: { type: "refund", status: "failed" },
      expand: "order",
      reason: "a failed refund may be repeated",
    }),
    slice({
      step: "status",
      resource: "transaction",
      filter: { status: "voided" },
      createdFrom: ago(voidedHorizonMs),
      expand: "order",
      reason: "voids come soon after the sale",
    }),
    slice({
      step: "status",
      resource: "order",
      filter: { status: "failed" },
      createdFrom: ago(failedHorizonMs),
      reason: "a retry that succeeds may add no new transaction",
    }),
    ...["active", "paused", "past_due"].map(live),
  ];
}

const rotationSlice = (resource: Resource, part: RotationPart): Slice =>
  historySlice(resource, part, { step: "rotation", reason: "this run's part of all history" });

const staleSlice = (resource: Resource, part: RotationPart): Slice =>
  historySlice(resource, part, {
    step: "stale",
    reason: "what proved it is too old to count until the next night",
  });

const historySlice = (
  resource: Resource,
  { from, before, closesCycle }: RotationPart,
  why: { step: string; reason: string },
): Slice =>
  slice({
    resource,
    createdFrom: from,
    createdBefore: before,
    isClosed: true,
    closesCycle,
    ...why,
  });

/** The same orders in the opposite direction: a cursor can lose rows that share one second. */
const orderCheck = (rotation: Slice): Slice => ({
  ...rotation,
  step: "order_check",
  direction: "oldest_first",
  closesCycle: false,
  reason: "read in the other direction, the same orders must be listed",
});

/** The part of a resource's history that one nightly run reads. */
export interface RotationPart {
  /** Null: from the first record on. */
  from: string | null;
  before: string;
  /** It reaches the window, so the next run restarts at the first record. */
  closesCycle: boolean;
}

export interface RotationState {
  /** How far this cycle has read; null before its first run. */
  position: string | null;
  /** T0 of the run that completed the last cycle. */
  cycleStart: Date;
}

/**
 * The number of this cycle's remaining rows that are due in this run. They are spread evenly over the cycle's remaining
 * nightly runs; the last one reads all that is left. Later runs make up for a missed one.
 */
export function rowsDue(
  { remainingRows, cycleStart, t0 }: { remainingRows: number; cycleStart: Date; t0: Date },
  nights: number,
): number {
  const nightsLeft = Math.max(1, nights - nightOf({ cycleStart, t0 }) + 1);
  return Math.ceil(remainingRows / nightsLeft);
}

/** The number of this nightly run in its cycle, from 1. Rounded, since a day may have 23 or 25 hours. */
const nightOf = ({ cycleStart, t0 }: { cycleStart: Date; t0: Date }): number =>
  Math.max(1, Math.round((t0.getTime() - cycleStart.getTime()) / dayMs));

/** How far a resource's rotation has come, by its proved parts. Null when no run was ever complete. */
export async function rotationState(db: Knex, resource: Resource): Promise<RotationState | null> {
  const { rows } = await db.raw<{ rows: { position: Date | null; cycle_start: Date | null }[] }>(
    `with parts as (
       select r.t0, c.created_before, c.closes_cycle
       from reconcile.coverage c join reconcile.runs r on r.id = c.run
       where c.resource = ? and (c.step in ('rotation', 'all') or c.closes_cycle)
         and (c.run, c.slice) in (select s.run, s.slice from reports.read_slices() s)
     ), closed as (select max(t0) as at from parts where closes_cycle)
     select closed.at as cycle_start,
            (select max(created_before) from parts where t0 > closed.at and not closes_cycle) as position
     from closed`,
    [resource],
  );
  const [row] = rows;
  if (row === undefined || row.cycle_start === null) return null;
  return {
    position: row.position === null ? null : boundText(row.position),
    cycleStart: row.cycle_start,
  };
}

/**
 * The part of this run, cut by the mirror's own rows: it starts where the rotation stopped, has as many rows as are
 * due, and ends at the window at the latest, which every nightly run reads anyway.
 */
async function rotationPart(
  db: Knex,
  { resource, t0, windowFrom }: { resource: Resource; t0: Date; windowFrom: string },
  { position, cycleStart }: RotationState,
  nights: number,
): Promise<RotationPart | null> {
  const whole = { from: null, before: windowFrom, closesCycle: true };
  // Without date filters, a part of a list would cost all newer rows too: the list is read whole, once a cycle.
  if (!isListedByDate(resource)) return nightOf({ cycleStart, t0 }) < nights ? null : whole;
  const from = position !== null && position < windowFrom ? position : null;
  const history = () =>
    db(`mirror.${mirrorTableOf(resource)}`)
      .where("created_at", "<", windowFrom)
      .modify((query) => {
        if (from !== null) void query.where("created_at", ">=", from);
      });
  const [counted] = await history().count<{ n: string }[]>("* as n");
  const due = rowsDue({ remainingRows: Number(counted?.n ?? 0), cycleStart, t0 }, nights);
  const next = await history().orderBy("created_at").offset(due).first<{ created_at: Date } | undefined>("created_at");
  const before = next === undefined ? windowFrom : boundText(next.created_at);
  // More rows than are due share one creation time: a part that ends there would be empty, so all that is left is read.
  const isStuck = from !== null && before <= from;
  if (next === undefined || isStuck) return { from, before: windowFrom, closesCycle: true };
  return { from, before, closesCycle: false };
}
