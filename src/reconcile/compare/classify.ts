import type { DifferentGroup, DifferentObject } from "../../mirror/compare/compare-states.ts";
import type { GroupState, Resource } from "../../mirror/snapshot.ts";
import { timeOfVersion } from "../../mirror/version.ts";
import type { Difference } from "../findings/findings.ts";
import { bookkeeping, differencesOf, unknownDifferences } from "./differences.ts";

/** An object that differs, and what that means. */
export interface Classified {
  resource: Resource;
  id: string;
  object: DifferentObject;
  classification: Classification;
}

/** What is to be done about the objects that differ. */
export interface Sorted {
  /** To be applied from what was read, at once. */
  apply: Classified[];
  /** To be read again, after the grace. */
  recheck: Classified[];
  overtaken: Classified[];
}

export interface SortOptions {
  /** The second look, after the grace: nothing is doubted any more. */
  isConfirmed: boolean;
}

/** Decides what to do about each difference: see `classify`. Pure. */
export function triage(
  differing: readonly DifferentObject[],
  look: Look,
  { isConfirmed }: SortOptions,
): Sorted {
  const sorted: Sorted = { apply: [], recheck: [], overtaken: [] };
  for (const object of differing) {
    const classification = classify(object, look);
    const classified = { resource: object.resource, id: object.id, object, classification };
    sorted[placeOf(classification, isConfirmed)].push(classified);
  }
  return sorted;
}

function placeOf(classification: Classification, isConfirmed: boolean): keyof Sorted {
  switch (classification.kind) {
    case "filled":
    case "settled":
      return "apply";
    case "overtaken":
      return "overtaken";
    case "mismatch":
      return isConfirmed ? "apply" : "recheck";
    case "missing_here":
    case "behind":
      return classification.isYoung && !isConfirmed ? "recheck" : "apply";
  }
}

/** The states that bring an object up to what was read. */
export const statesOf = (classified: readonly Classified[]): GroupState[] =>
  classified.flatMap(({ object }) => object.groups.map(({ state }) => state));

/** What an object of a page is, beside the mirror's. An object without a verdict is equal. */
export type Classification =
  /** What no event carries was not here yet (a transaction as itself): applied, and no drift. */
  | { kind: "filled" }
  /** A sale was confirmed, which no event announces: applied, and no drift. */
  | { kind: "settled" }
  /** The mirror knows something newer than the page: an event overtook it. */
  | { kind: "overtaken" }
  | { kind: "missing_here" | "behind"; isYoung: boolean; differences: Difference[] }
  /** The same version with other content, or an older one at the service than here. */
  | { kind: "mismatch"; differences: Difference[] };

/** Whether mirror and service differ in what should have been here: the rest is no finding. */
export const hasDifferences = (
  classification: Classification,
): classification is Extract<Classification, { differences: Difference[] }> =>
  "differences" in classification;

export interface Look {
  /** The service's `Date` of the page, fixed form. */
  observedAt: string;
  graceMs: number;
  /** The transactions that the page shows. */
  shown: () => ShownTransactions;
}

/**
 * A change that is newer than a page may have come between its making and its comparison. An old one may not, nor one
 * of the future: what bears such a time would pass for overtaken until then.
 */
const overtakenWithinMs = 5 * 60_000;

/**
 * Decides what a difference means, by the same order of versions as the worker's: newer there is behind, newer here
 * has overtaken the page, the same version with other content is a mismatch. Pure.
 */
function classify(object: DifferentObject, look: Look): Classification {
  const { stored, groups } = object;
  if (stored === null) {
    return {
      kind: "missing_here",
      isYoung: isYoung(groups, look),
      differences: differencesOf(object),
    };
  }
  const kinds = new Set(groups.map((group) => classifyGroup(object, group, look)));
  if (kinds.has("mismatch")) return { kind: "mismatch", differences: differencesOf(object) };
  if (kinds.has("behind")) {
    const differences = differencesOf(object);
    if (isSettlement(object, differences, look.shown)) return { kind: "settled" };
    return { kind: "behind", isYoung: isYoung(groups, look), differences };
  }
  return { kind: kinds.has("filled") ? "filled" : "overtaken" };
}

type GroupKind = "filled" | "overtaken" | "behind" | "mismatch";

function classifyGroup(object: DifferentObject, group: DifferentGroup, look: Look): GroupKind {
  if (unknownDifferences(object, group).length === 0) return "filled";
  const here = group.storedVersion === "" ? otherTime(object) : timeOfVersion(group.storedVersion);
  const there = timeOfVersion(group.state.version);
  if (here < there) return "behind";
  if (here === there) return "mismatch";
  const isAbout = Math.abs(Date.parse(here) - Date.parse(look.observedAt)) < overtakenWithinMs;
  return isAbout ? "overtaken" : "mismatch";
}

/** Since when the mirror knows an object by another group than the one that the page shows. */
function otherTime({ stored }: DifferentObject): string {
  const version = stored?.["inline_version"] ?? stored?.["version"];
  return typeof version === "string" ? timeOfVersion(version) : "";
}

function isYoung(groups: readonly DifferentGroup[], { observedAt, graceMs }: Look): boolean {
  const newest = Math.max(...groups.map(({ state }) => Date.parse(timeOfVersion(state.version))));
  return newest > Date.parse(observedAt) - graceMs;
}

/*
 * Live, a sale is confirmed one to three business days after it was paid: its status moves on, and so may its order's
 * `updated_at`. No event is documented for that, so it can only be learned by reading: it is neither drift nor a webhook
 * that was missed. `reports.last_changes` holds the same view of orders for the delivery statement.
 */

/** When each transaction of an order was made and last changed, by the answer that shows the order. */
export type ShownTransactions = ReadonlyMap<string, readonly ShownTransaction[]>;

interface ShownTransaction {
  isSettledSale: boolean;
  createdMs: number;
  updatedMs: number;
}

/** An order and its sale change together, but not in the same instant: `reports.same_moment`. */
export const togetherMs = 2_000;

const nextStatuses: Readonly<Record<string, readonly string[]>> = {
  pending: ["in_progress", "succeeded"],
  in_progress: ["succeeded"],
};

/** Statuses of a sale that was confirmed, or is on the way to it. */
const settling = new Set(["in_progress", "succeeded"]);

/** Reads the transactions out of an answer's states, by order. Pure. */
export function shownTransactions(states: readonly GroupState[]): ShownTransactions {
  const shown = new Map<string, ShownTransaction[]>();
  for (const { group, json, updatedAt } of states) {
    if (!group.startsWith("transaction")) continue;
    const { order_id, type, status, created_at } = JSON.parse(json) as Record<string, unknown>;
    if (typeof order_id !== "string") continue;
    const transaction = {
      isSettledSale: type === "sale" && settling.has(String(status)),
      createdMs: Date.parse(String(created_at)),
      updatedMs: Date.parse(updatedAt),
    };
    const known = shown.get(order_id);
    if (known === undefined) shown.set(order_id, [transaction]);
    else known.push(transaction);
  }
  return shown;
}

/** Whether what the service shows differs from the mirror by nothing but a sale's settlement. Pure. */
function isSettlement(
  object: DifferentObject,
  differences: readonly Difference[],
  shown: () => ShownTransactions,
): boolean {
  if (object.resource === "transaction") return isSettledSale(object, differences);
  if (object.resource !== "order") return false;
  if (!differences.every(({ field }) => bookkeeping.has(field))) return false;
  const changedMs = Math.max(...object.groups.map(({ state }) => Date.parse(state.updatedAt)));
  return isExplained(changedMs, shown().get(object.id) ?? []);
}

function isSettledSale({ stored }: DifferentObject, differences: readonly Difference[]): boolean {
  const status = differences.find(({ field }) => field === "status");
  if (status === undefined || stored?.["type"] !== "sale") return false;
  const isForward = nextStatuses[String(status.mirror)]?.includes(String(status.service)) === true;
  return (
    isForward && differences.every(({ field }) => field === "status" || bookkeeping.has(field))
  );
}

/** An order changed when its sale settled, and not when a charge or a refund was made. */
const isExplained = (changedMs: number, transactions: readonly ShownTransaction[]): boolean =>
  transactions.some(
    ({ isSettledSale: is, updatedMs }) => is && Math.abs(updatedMs - changedMs) <= togetherMs,
  ) && transactions.every(({ createdMs }) => changedMs - createdMs > togetherMs);
