import type { DiscountTerms, DurationTerms } from "../coupon-records.ts";

/**
 * Cents that a coupon takes off `eligible` cents: `min(amount, eligible)`, or the floor of the percentage, capped after
 * the floor (spec, `POST /coupons/validate`). Exact: never a float between the two integers.
 */
export function discountOf(terms: DiscountTerms, eligible: number): number {
  const { percentage, amount, max_discount_amount } = terms;
  if (percentage === null) return Math.min(amount ?? 0, eligible);
  return Math.min(floorOfPercentage(eligible, percentage), max_discount_amount ?? eligible);
}

/** A percentage is the decimal number it is written as: 12.1 is 121 / 10, whatever a double makes of it. */
function floorOfPercentage(cents: number, percentage: number): number {
  const [whole = "", fraction = ""] = String(percentage).split(".");
  const divisor = 100n * 10n ** BigInt(fraction.length);
  return Number((BigInt(cents) * BigInt(whole + fraction)) / divisor);
}

/** Whether a redeemed coupon discounts this cycle of its subscription, counted from 1 (statement 385). */
export function coversCycle(terms: DurationTerms, cycle: number): boolean {
  if (terms.duration === "forever") return true;
  return cycle <= (terms.duration === "once" ? 1 : (terms.duration_in_cycles ?? 0));
}
