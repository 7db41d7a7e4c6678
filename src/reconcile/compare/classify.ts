import type { DifferentGroup, DifferentObject } from "../../mirror/compare/compare-states.ts";
import type { GroupState, Resource } from "../../mirror/snapshot.ts";
import { timeOfVersion } from "../../mirror/version.ts";
import type { Difference } from "../findings/findings.ts";
import { bookkeeping, differencesOf, unknownDifferences } from "./differences.ts";

/** An object that differs, and its classification. */
export interface Classified {
  resource: Resource;
  id: string;
  object: DifferentObject;
  classification: Classification;
}

/** Differing objects, by what is to be done about them. */
export interface Sorted {
  /** To be written at once, from the answer. */
  apply: Classified[];
  /** To be read again, after the grace. */
  recheck: Classified[];
  overtaken: Classified[];
}

export interface SortOptions {
  /** This is the recheck, after the grace: its result is final. */
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

/** The states that bring these objects up to the service's answer. */
export const statesOf = (classified: readonly Classified[]): GroupState[] =>
  classified.flatMap(({ object }) => object.groups.map(({ state }) => state));

/** How an object of a page compares with the mirror. An object without a classification is equal. */
export type Classification =
  /** Data that no event carries was not here yet (a transaction as itself): applied, not drift. */
  | { kind: "filled" }
  /** A sale was settled, which no event announces: applied, not drift. */
  | { kind: "settled" }
  /** An event overtook the page: the mirror has something newer. */
  | { kind: "overtaken" }
  | { kind: "missing_here" | "behind"; isYoung: boolean; differences: Difference[] }
  /** The same version with other content, or an older version at the service than here. */
  | { kind: "mismatch"; differences: Difference[] };

/** Whether mirror and service differ in something that should have been here: only that is a finding. */
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
 * The event of a change this close to the page's `Date` may have arrived between the answer and its comparison. That of
 * an older change cannot have. Nor can a time far in the future, which would count as overtaken until it comes.
 */
const overtakenWithinMs = 5 * 60_000;

/**
 * Classifies a difference by the order of versions that the worker uses. Newer at the service: behind. Newer here:
 * overtaken. The same version with other content: mismatch. Pure.
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
  const isRecent = Math.abs(Date.parse(here) - Date.parse(look.observedAt)) < overtakenWithinMs;
  return isRecent ? "overtaken" : "mismatch";
}

/** The time by which the mirror knows the object through another group than the one on the page. */
function otherTime({ stored }: DifferentObject): string {
  const version = stored?.["inline_version"] ?? stored?.["version"];
  return typeof version === "string" ? timeOfVersion(version) : "";
}

function isYoung(groups: readonly DifferentGroup[], { observedAt, graceMs }: Look): boolean {
  const newest = Math.max(...groups.map(({ state }) => Date.parse(timeOfVersion(state.version))));
  return newest > Date.parse(observedAt) - graceMs;
}

/*
 * In production a sale is settled one to three business days after it was paid: its status changes, and so may its
 * order's `updated_at`. No event is documented for that, so only a read reveals it: it is neither drift nor a missed
 * webhook. `reports.last_changes` applies the same rule to orders for the delivery statement.
 */

/** When each transaction of an order was created and last changed, by the answer that shows the order. */
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

/** Statuses of a sale that is settled or about to be. */
const settling = new Set(["in_progress", "succeeded"]);

/** Reads the transactions from an answer's states, by order. Pure. */
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

/** Whether the only difference between service and mirror is the settlement of a sale. Pure. */
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

/** The order's change is explained if its sale was settled then, and no charge or refund was made then. */
const isExplained = (changedMs: number, transactions: readonly ShownTransaction[]): boolean =>
  transactions.some(
    ({ isSettledSale: is, updatedMs }) => is && Math.abs(updatedMs - changedMs) <= togetherMs,
  ) && transactions.every(({ createdMs }) => changedMs - createdMs > togetherMs);
