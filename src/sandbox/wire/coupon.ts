import type { CouponCodeRecord, CouponRecord } from "../coupon-records.ts";

/** A coupon (spec, Coupon). */
export function couponBody(coupon: CouponRecord): Record<string, unknown> {
  return { ...coupon };
}

export function couponCodeBody(code: CouponCodeRecord): Record<string, unknown> {
  return { ...code };
}
