import type { DifferentGroup, DifferentObject } from "../../../core/mirror/compare/compare-states.ts";
import type { GroupState, Resource } from "../../../core/mirror/snapshot.ts";
import { timeOfVersion } from "../../../core/mirror/version.ts";
import type { Difference } from "../findings/findings.ts";
import { differencesOf, newDifferences } from "./differences.ts";

/** An object that differs, and its classification. */
export interface Classified {
  resource: Resource;
  id: string;
  object: DifferentObject;
  classification: Classification;
}

/** Differing objects, by the next step for them. */
export interface Triaged {
  /** Objects to write now, from the answer. */
  apply: Classified[];
  /** Objects to read again, after the grace. */
  recheck: Classified[];
  overtaken: Classified[];
}

export interface TriageOptions {
  /** This is the recheck, after the grace: its result is final. */
  isRecheck: boolean;
  /** Objects that are behind by a settlement alone (`settledAmong`). */
  settled: ReadonlySet<Classified>;
}

/** Decides what to do about each difference. */
export function triage(differing: readonly Classified[], { isRecheck, settled }: TriageOptions): Triaged {
  const sorted: Triaged = { apply: [], recheck: [], overtaken: [] };
  for (const one of differing) {
    const classified: Classified = settled.has(one) ? { ...one, classification: { kind: "settled" } } : one;
    sorted[bucketOf(classified.classification, isRecheck)].push(classified);
  }
  return sorted;
}

function bucketOf(classification: Classification, isRecheck: boolean): keyof Triaged {
  switch (classification.kind) {
    case "filled":
    case "settled":
      return "apply";
    case "overtaken":
      return "overtaken";
    case "mismatch":
      return isRecheck ? "apply" : "recheck";
    case "missing_here":
    case "behind":
      return classification.isYoung && !isRecheck ? "recheck" : "apply";
  }
}

/** The states that bring these objects up to the service's answer. */
export const statesOf = (classified: readonly Classified[]): GroupState[] =>
  classified.flatMap(({ object }) => object.groups.map(({ state }) => state));

/** The result of comparing a page's object with the mirror. An object without a classification is equal. */
export type Classification =
  /** Data that no event carries was not here yet (a transaction as itself): applied, not drift. */
  | { kind: "filled" }
  /** A sale was settled, which no event announces: applied, not drift. */
  | { kind: "settled" }
  /** An event overtook the page: the mirror has something newer, dated close to the page's `Date`. */
  | { kind: "overtaken" }
  | { kind: "missing_here" | "behind"; isYoung: boolean; differences: Difference[] }
  /** Other content with the same `updated_at`, or newer here and not dated close to the page's `Date`. */
  | { kind: "mismatch"; differences: Difference[] };

/** Whether mirror and service differ in something that should have been here: only that is a finding. */
export const hasDifferences = (
  classification: Classification,
): classification is Extract<Classification, { differences: Difference[] }> => "differences" in classification;

export interface AnswerFacts {
  /** The service's `Date` of the page, fixed form. */
  observedAt: string;
  graceMs: number;
}

/**
 * The event of a change this close to the page's `Date` may have arrived between the answer and its comparison. An
 * older change cannot have raced the page. A time far in the future is no race either; without the limit it would count
 * as overtaken until that time comes.
 */
const overtakenWithinMs = 5 * 60_000;

/**
 * Classifies a difference. Not stored: missing here. A group with nothing but new data: filled. Any other group by its
 * `updated_at`, with which versions start. Newer at the service: behind. The same: mismatch. Newer here: overtaken if
 * close to the page's `Date`, else mismatch. Of several groups, mismatch counts first, then behind, then filled.
 */
export function classify(object: DifferentObject, answer: AnswerFacts): Classified {
  const { resource, id } = object;
  return { resource, id, object, classification: classificationOf(object, answer) };
}

function classificationOf(object: DifferentObject, answer: AnswerFacts): Classification {
  const { stored, groups } = object;
  if (stored === null) {
    return {
      kind: "missing_here",
      isYoung: isYoung(groups, answer),
      differences: differencesOf(object),
    };
  }
  const kinds = new Set(groups.map((group) => classifyGroup(object, group, answer)));
  if (kinds.has("mismatch")) return { kind: "mismatch", differences: differencesOf(object) };
  if (kinds.has("behind")) {
    return { kind: "behind", isYoung: isYoung(groups, answer), differences: differencesOf(object) };
  }
  return { kind: kinds.has("filled") ? "filled" : "overtaken" };
}

type GroupKind = "filled" | "overtaken" | "behind" | "mismatch";

function classifyGroup(object: DifferentObject, group: DifferentGroup, answer: AnswerFacts): GroupKind {
  if (newDifferences(object, group).length === 0) return "filled";
  const here = group.storedVersion === "" ? otherTime(object) : timeOfVersion(group.storedVersion);
  const there = timeOfVersion(group.state.version);
  if (here < there) return "behind";
  if (here === there) return "mismatch";
  const isRecent = Math.abs(Date.parse(here) - Date.parse(answer.observedAt)) < overtakenWithinMs;
  return isRecent ? "overtaken" : "mismatch";
}

/** The `updated_at` of the object's other stored group, for a group that the mirror has not seen. */
function otherTime({ stored }: DifferentObject): string {
  const version = stored?.["inline_version"] ?? stored?.["version"];
  return typeof version === "string" ? timeOfVersion(version) : "";
}

function isYoung(groups: readonly DifferentGroup[], { observedAt, graceMs }: AnswerFacts): boolean {
  const newest = Math.max(...groups.map(({ state }) => Date.parse(timeOfVersion(state.version))));
  return newest > Date.parse(observedAt) - graceMs;
}
