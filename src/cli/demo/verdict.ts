import { counted } from "../../platform/counted.ts";

export interface DemoSummary {
  delivered: number;
  accepted: number;
  duplicate: number;
  rejected: number;
  applied: number;
  stale: number;
  missing_before: number;
  missing_after: number;
  /** Findings that reconciliation healed, and those it left. */
  healed: number;
  left: number;
  complete: boolean;
  seconds: number;
  equal: boolean;
}

/**
 * Why a run proves nothing, in a few words; empty where it proves the point. Without losses, repeats, corruption
 * and overtaking nothing would have been proved.
 */
export function whyNotProved(summary: DemoSummary, dead: number): string {
  if (!summary.equal)
    return `${counted(summary.missing_after, "object differs", "objects differ")}`;
  if (!summary.complete) return "reconciliation did not read everything";
  if (summary.left > 0) return `reconciliation left ${counted(summary.left, "difference")}`;
  if (dead > 0) return `${counted(dead, "event is", "events are")} dead`;
  const needed = ["missing_before", "healed", "duplicate", "rejected", "stale"] as const;
  const absent = needed.filter((name) => summary[name] === 0);
  return absent.length === 0 ? "" : `nothing to prove: ${absent.join(", ")} 0`;
}
