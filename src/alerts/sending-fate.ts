import type { ClaimedRow } from "./outbox.ts";

/** Whether a claimed row is still worth telling, and if not, why. */
export type Fate = { send: true } | { send: false; reason: string };

/**
 * Nobody is told of what is over already, nor that something is over of which they never heard. What may have
 * arrived is sent again all the same, with the same key: only so is it known to have been told. A list tells of other
 * alerts than its own.
 */
export function fateOf(
  row: Pick<
    ClaimedRow,
    "action" | "alertState" | "mayBeRepeat" | "isList" | "isEarlierTold" | "isLaterTold"
  >,
): Fate {
  if (row.mayBeRepeat || row.isList) return { send: true };
  if (row.action !== "trigger" && !row.isEarlierTold) {
    return { send: false, reason: "this channel was not told that it began" };
  }
  if (row.action !== "resolve" && row.alertState === "resolved") {
    return { send: false, reason: "resolved before it was sent" };
  }
  if (row.isLaterTold) return { send: false, reason: "a later stage was sent first" };
  return { send: true };
}
