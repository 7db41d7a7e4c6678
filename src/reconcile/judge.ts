import type { DifferentGroup, DifferentObject } from "../mirror/compare-rows.ts";
import { timeOfVersion } from "../mirror/version.ts";
import { differencesOf, unknownDifferences } from "./differences.ts";
import type { Difference } from "./findings.ts";
import { isSettlement } from "./settlement.ts";
import type { ShownTransactions } from "./settlement.ts";

/** What an object of a page is, beside the mirror's. An object without a verdict is equal. */
export type Judgement =
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
  judgement: Judgement,
): judgement is Extract<Judgement, { differences: Difference[] }> => "differences" in judgement;

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
export function judge(object: DifferentObject, look: Look): Judgement {
  const { stored, groups } = object;
  if (stored === null) {
    return {
      kind: "missing_here",
      isYoung: isYoung(groups, look),
      differences: differencesOf(object),
    };
  }
  const kinds = new Set(groups.map((group) => judgeGroup(object, group, look)));
  if (kinds.has("mismatch")) return { kind: "mismatch", differences: differencesOf(object) };
  if (kinds.has("behind")) {
    const differences = differencesOf(object);
    if (isSettlement(object, differences, look.shown)) return { kind: "settled" };
    return { kind: "behind", isYoung: isYoung(groups, look), differences };
  }
  return { kind: kinds.has("filled") ? "filled" : "overtaken" };
}

type GroupKind = "filled" | "overtaken" | "behind" | "mismatch";

function judgeGroup(object: DifferentObject, group: DifferentGroup, look: Look): GroupKind {
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
