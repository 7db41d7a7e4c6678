import { z } from "zod";

import { couponDurations, couponKinds } from "./applied-coupon.ts";
import { count, currencyCode, minorUnits, openEnum, timestamp, wireId } from "./wire-types.ts";

export const couponScopes = ["none", "all", "specific"] as const;

/** A discount campaign (spec, Coupon). Exactly one of `percentage` and `amount` is set. */
export const couponSchema = z.looseObject({
  id: wireId,
  name: z.string(),
  description: z.string().nullish(),
  kind: openEnum(couponKinds),
  percentage: z.number().nullable().describe("1 to 100"),
  amount: minorUnits.nullable().describe("Minor units"),
  max_discount_amount: minorUnits.nullish().describe("Minor units; percentage coupons only"),
  currency: currencyCode.nullish(),
  duration: openEnum(couponDurations),
  duration_in_cycles: count.nullish(),
  first_time_customer_only: z.boolean().nullish(),
  max_redemptions_per_code: count.nullish(),
  max_redemptions: count.nullish(),
  max_redemptions_per_customer: count.nullish(),
  minimum_amount: minorUnits.nullish().describe("Minor units"),
  starts_at: timestamp.nullish(),
  expires_at: timestamp.nullish(),
  active: z.boolean(),
  archived_at: timestamp.nullish(),
  product_scope: openEnum(couponScopes).nullish(),
  plan_scope: openEnum(couponScopes).nullish(),
  product_ids: z.array(z.string()).nullish(),
  plan_ids: z.array(z.string()).nullish(),
  code_prefix: z.string().nullish().describe("Name assumed"),
  generated_code_count: count.nullish().describe("Name assumed"),
  redemption_count: count.nullish().describe("Name assumed"),
  created_at: timestamp,
  updated_at: timestamp.nullish(),
});

/** One code of a coupon. No field is shown; all are assumed. */
export const couponCodeSchema = z.looseObject({
  id: wireId,
  coupon_id: wireId,
  code: z.string(),
  redemption_count: count.nullish(),
  created_at: timestamp,
});
