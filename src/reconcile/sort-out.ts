import type { DifferentObject } from "../mirror/compare-rows.ts";
import type { GroupState, Resource } from "../mirror/observation.ts";
import { judge } from "./judge.ts";
import type { Judgement, Look } from "./judge.ts";
import { resourceIn } from "./mirror-tables.ts";

/** An object that differs, and what that means. */
export interface Judged {
  resource: Resource;
  id: string;
  object: DifferentObject;
  judgement: Judgement;
}

/** What is to be done about the objects that differ. */
export interface Sorted {
  /** To be applied from what was read, at once. */
  apply: Judged[];
  /** To be read again, after the grace. */
  doubt: Judged[];
  overtaken: Judged[];
}

export interface SortOptions {
  /** The second look, after the grace: nothing is doubted any more. */
  isConfirmed: boolean;
}

/** Decides what to do about each difference: see `judge`. Pure. */
export function sortOut(
  differing: readonly DifferentObject[],
  look: Look,
  { isConfirmed }: SortOptions,
): Sorted {
  const sorted: Sorted = { apply: [], doubt: [], overtaken: [] };
  for (const object of differing) {
    const resource = resourceIn(object.table);
    const judgement = judge(object, look);
    const judged = { resource, id: object.id, object, judgement };
    sorted[placeOf(judgement, isConfirmed)].push(judged);
  }
  return sorted;
}

function placeOf(judgement: Judgement, isConfirmed: boolean): keyof Sorted {
  switch (judgement.kind) {
    case "filled":
    case "settled":
      return "apply";
    case "overtaken":
      return "overtaken";
    case "mismatch":
      return isConfirmed ? "apply" : "doubt";
    case "missing_here":
    case "behind":
      return judgement.isYoung && !isConfirmed ? "doubt" : "apply";
  }
}

/** The states that bring an object up to what was read. */
export const statesOf = (judged: readonly Judged[]): GroupState[] =>
  judged.flatMap(({ object }) => object.groups.map(({ state }) => state));
