import { z } from "zod";

import { count, currencyCode, minorUnits, openEnum } from "./wire-types.ts";

export const couponKinds = ["generated", "promo"] as const;
export const couponDurations = ["once", "repeating", "forever"] as const;

/**
 * The discount of an order or subscription as it stood at redemption; later edits of the coupon do
 * not change it (spec, Order, `applied_coupon`).
 */
export const appliedCouponSchema = z.looseObject({
  id: z.string().nullish(),
  code: z.string().nullish(),
  name: z.string().nullish(),
  kind: openEnum(couponKinds).nullish(),
  percentage: z.number().nullish().describe("0 to 100; null when the coupon is amount-off"),
  amount: minorUnits.nullish().describe("Minor units; null when the coupon is percentage-off"),
  max_discount_amount: minorUnits.nullish().describe("Minor units; percentage coupons only"),
  currency: currencyCode.nullish(),
  duration: openEnum(couponDurations).nullish(),
  duration_in_cycles: count.nullish(),
  discount_amount: minorUnits
    .nullish()
    .describe("Minor units; on a subscription the discount of the first cycle only"),
});
