import { z } from "zod";

import { couponDurations, couponKinds } from "../resources/applied-coupon.ts";
import { couponScopes } from "../resources/coupon.ts";
import { cents, currency, isoDateTime, plainText, positiveCents } from "./request-fields.ts";

/** Codes minted in one call (spec, Limits). */
const maxCodesPerCall = 500;
const maxIds = 500;
const maxCycles = 1000;

const limit = z.int().positive().nullish();
const ids = z.array(z.string().max(100)).max(maxIds);
const codeCount = z.int().min(1).max(maxCodesPerCall);

/** What creation and change have in common. Which terms go together is a matter of the whole coupon. */
const couponTermsInput = z.object({
  name: plainText(100).refine((text) => text.trim() !== "", "must not be blank"),
  description: plainText(1000).nullish(),
  percentage: z.number().min(1).max(100).nullish(),
  amount: positiveCents.nullish(),
  max_discount_amount: positiveCents.nullish(),
  currency: currency.optional(),
  duration: z.enum(couponDurations),
  duration_in_cycles: z.int().positive().max(maxCycles).nullish(),
  first_time_customer_only: z.boolean().optional(),
  max_redemptions_per_code: limit,
  max_redemptions: limit,
  max_redemptions_per_customer: limit,
  minimum_amount: cents.nullish(),
  starts_at: isoDateTime.nullish(),
  expires_at: isoDateTime.nullish(),
  product_scope: z.enum(couponScopes).optional(),
  plan_scope: z.enum(couponScopes).optional(),
  product_ids: ids.optional(),
  plan_ids: ids.optional(),
});

/** Field names of the `codes` block are not shown. */
export const newCouponInput = couponTermsInput.extend({
  kind: z.enum(couponKinds).default("generated"),
  codes: z
    .object({
      count: codeCount,
      prefix: z
        .string()
        .regex(/^[A-Z0-9-]{1,20}$/, "must be up to 20 of A-Z, 0-9 and -")
        .optional(),
    })
    .optional(),
});

export const couponChangeInput = couponTermsInput.partial().extend({
  kind: z.undefined("cannot be changed").optional(),
  active: z.boolean().optional(),
});

/** Exactly one of both, which the sandbox checks. */
export const mintInput = z.object({
  count: codeCount.optional(),
  codes: z
    .array(z.string().regex(/^[A-Z0-9-]{8,50}$/, "must be 8 to 50 of A-Z, 0-9 and -"))
    .min(1)
    .max(maxCodesPerCall)
    .optional(),
});

/** All names but `code` are assumed. What is left out is not checked. */
export const couponPreviewInput = z.object({
  code: z.string().min(1).max(100),
  customer_id: z.string().max(100).optional(),
  plan_id: z.string().max(100).optional(),
  product_ids: ids.min(1).optional(),
  cart_amount: cents.optional().describe("Minor units: what the eligible items cost together"),
  currency: currency.optional(),
});

/** Why a coupon code is refused. The interface names `coupon_expired` and the two of scopes. */
export const couponErrors = [
  "code_not_found",
  "coupon_archived",
  "coupon_inactive",
  "coupon_not_started",
  "coupon_expired",
  "coupon_exhausted",
  "coupon_code_exhausted",
  "coupon_currency_mismatch",
  "product_not_eligible",
  "plan_not_eligible",
  "coupon_minimum_not_met",
  "coupon_first_time_only",
  "coupon_customer_limit_reached",
] as const;
