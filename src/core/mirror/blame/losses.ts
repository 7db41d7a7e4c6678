import { partsOfVersion } from "../version.ts";
import type { KnownState, RefusedState } from "./object-history.ts";
import type { Winner } from "./winners.ts";

/**
 * The reason why a state lost. The first four are the parts of a version in their order (version.ts):
 * - `older`: its own time is before the other's; for an entry of an order, the order's or the entry's own
 * - `unread`: of the same time, and the other was shown by a read, or by a later one
 * - `rank`: of the same time, and the other's status comes later in the object's life
 * - `hash`: equally far; the hash of the content decides until a read does
 * - `future`: it was dated more than an hour after it came, so it was not believed
 * - `overruled`: a person healed the object
 * - `group`: another group of fields decides this field
 * - `unexplained`: the row does not follow the versions; it was edited manually
 */
export type LossReason = "older" | "unread" | "rank" | "hash" | "future" | "overruled" | "group" | "unexplained";

export interface Loss {
  why: LossReason;
  /** The state that it lost to; null where it did not get that far. */
  to: KnownState | null;
  /** A later state was already known when it came. */
  isLate: boolean;
}

/** Compares two versions and names the part that makes the lower one lower. */
function whyLower(lower: string, higher: string): LossReason {
  if (lower > higher) return "unexplained";
  const [low, high] = [partsOfVersion(lower), partsOfVersion(higher)];
  if (low.updatedAt !== high.updatedAt || low.within !== high.within) return "older";
  if (low.observedAt !== high.observedAt) return "unread";
  return low.rank === high.rank ? "hash" : "rank";
}

/**
 * The states of one group that lost a contest, each with the reason: a higher one was already known when it came, or a
 * higher one has the same time. A state that a later one followed has not lost and is left out.
 */
export function lossesOf(states: readonly KnownState[], winner: Winner | undefined): ReadonlyMap<KnownState, Loss> {
  const losses = new Map<KnownState, Loss>();
  const versionIn = (state: KnownState): string => (state === winner?.state ? winner.version : state.version);
  for (const state of states) {
    if (state === winner?.state) continue;
    const own = versionIn(state);
    const higher = states.filter((other) => versionIn(other) > own);
    if (winner !== undefined && own > winner.version) {
      losses.set(state, { why: "unexplained", to: winner.state, isLate: false });
      continue;
    }
    const known = highest(
      higher.filter((other) => cameBefore(other, state)),
      versionIn,
    );
    const rival = known ?? higher.find((other) => isOfOneTime(versionIn(other), own));
    if (rival === undefined) continue;
    const why = whyLower(own, versionIn(rival));
    losses.set(state, { why, to: rival, isLate: why === "older" && known !== undefined });
  }
  return losses;
}

export const lossOfRefused = ({ heal }: RefusedState): Loss => ({
  why: heal === null ? "future" : "overruled",
  to: null,
  isLate: false,
});

function highest(states: readonly KnownState[], versionIn: (state: KnownState) => string): KnownState | undefined {
  return states.reduce<KnownState | undefined>(
    (best, state) => (best === undefined || versionIn(state) > versionIn(best) ? state : best),
    undefined,
  );
}

const isOfOneTime = (a: string, b: string): boolean => a.slice(0, a.indexOf("|")) === b.slice(0, b.indexOf("|"));

/** Events in the order of their arrival: those of one batch are recorded in another. */
function cameBefore(a: KnownState, b: KnownState): boolean {
  const [first, second] = [eventOf(a.cause), eventOf(b.cause)];
  if (first !== null && second !== null) return first < second;
  return a.recordedAt < b.recordedAt;
}

/** The number of the event in the inbox that a cause names; null for any other cause. */
export function eventOf(cause: string): number | null {
  const match = /^event:(\d{1,15})$/.exec(cause);
  return match === null ? null : Number(match[1]);
}
