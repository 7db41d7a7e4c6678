import { canonicalTimestamp } from "../service/timestamp.ts";

/**
 * A tie is settled by a read that the service dates at least two seconds after the tied states: `Date` has
 * whole seconds, and only then is it certain that the read came after both.
 */
const settleAfterMs = 2_000;

/** From and to the fixed form of `canonicalTimestamp`. */
export function settleLater(updatedAt: string): string {
  const later = new Date(Date.parse(updatedAt) + settleAfterMs).toISOString();
  return canonicalTimestamp(later) ?? updatedAt;
}
