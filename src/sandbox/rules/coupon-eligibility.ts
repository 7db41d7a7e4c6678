import type { couponErrors } from "../../service/routes/coupon-fields.ts";
import type { CouponCodeRecord, CouponRecord, CouponScope } from "../coupon-records.ts";

/** What a code would be redeemed for. What is left out is not checked: a preview may know less than an order. */
export interface CouponUse {
  /** Now, in ISO 8601 with milliseconds. */
  now: string;
  currency?: string;
  /** Cents, before the discount. */
  subtotal?: number;
  productIds?: readonly string[];
  planId?: string;
  /** Asked only where the coupon has such a rule, since the answers cost a look into the customer's history. */
  customer?: { redemptionsOf(couponId: string): number; isFirstTime(): boolean };
}

/** The codes of refusals and the reasons of previews. */
export const couponProblems = {
  code_not_found: "No such coupon code.",
  coupon_archived: "The coupon is archived.",
  coupon_inactive: "The coupon is not active.",
  coupon_not_started: "The coupon cannot be redeemed yet.",
  coupon_expired: "The coupon has expired.",
  coupon_exhausted: "The coupon was redeemed as often as it may be.",
  coupon_code_exhausted: "The code was redeemed as often as it may be.",
  coupon_currency_mismatch: "The coupon is for another currency.",
  product_not_eligible: "The coupon is for other products.",
  plan_not_eligible: "The coupon is for other plans.",
  coupon_minimum_not_met: "The order is below the coupon's minimum amount.",
  coupon_first_time_only: "The coupon is for first-time customers.",
  coupon_customer_limit_reached: "The customer redeemed the coupon as often as they may.",
} as const satisfies Record<CouponProblem, string>;

export type CouponProblem = (typeof couponErrors)[number];

/** The first reason why a code cannot be redeemed, or null. */
export function couponProblem(
  coupon: CouponRecord,
  code: CouponCodeRecord,
  use: CouponUse,
): CouponProblem | null {
  return (
    stateProblem(coupon, code, use.now) ?? cartProblem(coupon, use) ?? customerProblem(coupon, use)
  );
}

function stateProblem(
  coupon: CouponRecord,
  code: CouponCodeRecord,
  now: string,
): CouponProblem | null {
  if (coupon.archived_at !== null) return "coupon_archived";
  if (!coupon.active) return "coupon_inactive";
  if (coupon.starts_at !== null && now < coupon.starts_at) return "coupon_not_started";
  if (coupon.expires_at !== null && now >= coupon.expires_at) return "coupon_expired";
  if (isReached(coupon.max_redemptions, coupon.redemption_count)) return "coupon_exhausted";
  if (isReached(coupon.max_redemptions_per_code, code.redemption_count)) {
    return "coupon_code_exhausted";
  }
  return null;
}

function cartProblem(coupon: CouponRecord, use: CouponUse): CouponProblem | null {
  const { currency, subtotal, productIds, planId } = use;
  if (currency !== undefined && currency !== coupon.currency) return "coupon_currency_mismatch";
  if (productIds !== undefined && !productIds.some((id) => coversProduct(coupon, id))) {
    return "product_not_eligible";
  }
  if (planId !== undefined && !covers(coupon.plan_scope, coupon.plan_ids, planId)) {
    return "plan_not_eligible";
  }
  if (subtotal !== undefined && subtotal < (coupon.minimum_amount ?? 0)) {
    return "coupon_minimum_not_met";
  }
  return null;
}

function customerProblem(coupon: CouponRecord, { customer }: CouponUse): CouponProblem | null {
  if (customer === undefined) return null;
  if (coupon.first_time_customer_only && !customer.isFirstTime()) return "coupon_first_time_only";
  const limit = coupon.max_redemptions_per_customer;
  if (limit !== null && customer.redemptionsOf(coupon.id) >= limit)
    return "coupon_customer_limit_reached";
  return null;
}

/** Whether a coupon discounts a product. */
export function coversProduct(
  coupon: Pick<CouponRecord, "product_scope" | "product_ids">,
  productId: string,
): boolean {
  return covers(coupon.product_scope, coupon.product_ids, productId);
}

function covers(scope: CouponScope, ids: readonly string[], id: string): boolean {
  return scope === "all" || (scope === "specific" && ids.includes(id));
}

function isReached(limit: number | null, count: number): boolean {
  return limit !== null && count >= limit;
}
