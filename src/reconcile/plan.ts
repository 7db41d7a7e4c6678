import type { Resource } from "../mirror/observation.ts";
import { UsageError } from "../platform/errors.ts";
import type { RotationPart } from "./rotation.ts";
import type { ReconcileSettings } from "./settings.ts";
import { bound, slice, slicedResources } from "./slice.ts";
import type { Slice } from "./slice.ts";

/** What a nightly plan depends on. */
export interface NightlyFacts {
  t0: Date;
  /** The end of contiguous coverage: not of the last run that started. */
  coveredUntil: Date;
  /** The part of each resource's history that is due tonight; null where none is. */
  rotation: Readonly<Record<Resource, RotationPart | null>>;
}

type Horizons = Pick<ReconcileSettings, "overlapMs" | "failedHorizonMs" | "voidedHorizonMs">;

/**
 * The slices of a night, in the order in which they are walked (steps 2 to 6, 8 and 9 of the nightly run; the page
 * size comes before them, open items and confirmation after them). Pure.
 */
export function planNightly(facts: NightlyFacts, horizons: Horizons): Slice[] {
  const from = windowStart(facts, horizons);
  const rotation = slicedResources.flatMap((resource) => {
    const part = facts.rotation[resource];
    return part === null ? [] : [rotationSlice(resource, part)];
  });
  const orders = rotation.find(({ resource }) => resource === "order");
  return [
    ...windowSlices(from, bound(facts.t0)),
    ...statusSlices(facts.t0, horizons),
    ...rotation,
    ...(orders === undefined ? [] : [orderCheck(orders)]),
  ];
}

/** Tonight's window begins before the end of what was covered. */
export const windowStart = (
  { coveredUntil }: Pick<NightlyFacts, "coveredUntil">,
  { overlapMs }: Pick<Horizons, "overlapMs">,
): string => bound(new Date(coveredUntil.getTime() - overlapMs));

/** Everything from the first record to T0, in one slice a resource. */
export const planFull = (t0: Date): Slice[] =>
  slicedResources.map((resource) =>
    slice({
      step: "all",
      resource,
      createdBefore: bound(t0),
      isClosed: true,
      closesCycle: true,
      reason: "everything from the first record on",
    }),
  );

/**
 * The part of a range that a run can answer for: what is created from T0 on, it cannot know. Pure; throws `UsageError`
 * where that is nothing.
 */
export function answeredRange({
  t0,
  rangeFrom,
  rangeTo,
}: {
  t0: Date;
  rangeFrom: Date | null;
  rangeTo: Date | null;
}): { from: Date; before: Date } {
  const from = rangeFrom ?? new Date(0);
  const before = rangeTo === null || rangeTo > t0 ? t0 : rangeTo;
  if (from < before) return { from, before };
  throw new UsageError(
    `Nothing created from ${from.toISOString()} on can be answered for yet: a run reads what the service says was created ` +
      `before ${t0.toISOString()} (its time now, less RECONCILE_GRACE_SECONDS).`,
  );
}

/** What was created in a range. */
export const planRange = (from: Date, to: Date): Slice[] =>
  slicedResources.map((resource) =>
    slice({
      step: "range",
      resource,
      createdFrom: bound(from),
      createdBefore: bound(to),
      isClosed: true,
      reason: "created in the range asked for",
    }),
  );

function windowSlices(createdFrom: string, createdBefore: string): Slice[] {
  const window = { step: "window", createdFrom, createdBefore, isClosed: true };
  return [
    slice({ ...window, resource: "customer", reason: "new customers" }),
    slice({ ...window, resource: "order", reason: "new orders" }),
    slice({
      ...window,
      resource: "transaction",
      expand: "order",
      reason: "refunds and declined retries add transactions to orders of any age",
    }),
    slice({ ...window, resource: "subscription", reason: "new subscriptions, also failed ones" }),
  ];
}

/** By status, at any age: what changes without a new object to show it. */
function statusSlices(t0: Date, { failedHorizonMs, voidedHorizonMs }: Horizons): Slice[] {
  const ago = (ms: number) => bound(new Date(t0.getTime() - ms));
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
      reason: "failed refunds are repeated",
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
      reason: "an approved retry is not said to add a transaction",
    }),
    ...["active", "paused", "past_due"].map(live),
  ];
}

const rotationSlice = (resource: Resource, part: RotationPart): Slice =>
  slice({
    step: "rotation",
    resource,
    createdFrom: part.from,
    createdBefore: part.before,
    isClosed: true,
    closesCycle: part.closesCycle,
    reason: "tonight's part of all history",
  });

/** The same orders the other way round: rows of one second can be lost at a cursor. */
const orderCheck = (rotation: Slice): Slice => ({
  ...rotation,
  step: "order_check",
  direction: "oldest_first",
  closesCycle: false,
  reason: "what a walk in the other direction shows must be the same",
});
