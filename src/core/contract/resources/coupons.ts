import { z } from "zod";
import { defineEndpoint, idParam } from "../endpoint.ts";
import { booleanText, listOf, pageQuery, sortQuery } from "../lists.ts";
import { cents, currency, isoDateTime, plainText, positiveCents } from "../request-fields.ts";
import { count, currencyCode, minorUnits, openEnum, timestamp, wireId } from "../wire-types.ts";

export const couponKinds = ["generated", "promo"] as const;
export const couponDurations = ["once", "repeating", "forever"] as const;

/**
 * The discount of an order or subscription as it was at redemption; later edits of the coupon do not change it.
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
  discount_amount: minorUnits.nullish().describe("Minor units; on a subscription the discount of the first cycle only"),
});

export const couponScopes = ["none", "all", "specific"] as const;

/** A discount campaign. Exactly one of `percentage` and `amount` is set. */
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

/** One code of a coupon. No field is documented; all are assumed. */
export const couponCodeSchema = z.looseObject({
  id: wireId,
  coupon_id: wireId,
  code: z.string(),
  redemption_count: count.nullish(),
  created_at: timestamp,
});

/** The largest number of codes that one call creates. */
const maxCodesPerCall = 500;
const maxIds = 500;
const maxCycles = 1000;

const limit = z.int().positive().nullish();
const ids = z.array(z.string().max(100)).max(maxIds);
const codeCount = z.int().min(1).max(maxCodesPerCall);

/** Fields shared by creation and change. Cross-field rules are checked on the whole coupon. */
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

/** The field names of the `codes` block are assumed. */
const newCouponInput = couponTermsInput.extend({
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

const couponChangeInput = couponTermsInput.partial().extend({
  kind: z.undefined("cannot be changed").optional(),
  active: z.boolean().optional(),
});

/** Exactly one of the two must be set, which the sandbox checks. */
const mintInput = z.object({
  count: codeCount.optional(),
  codes: z
    .array(z.string().regex(/^[A-Z0-9-]{8,50}$/, "must be 8 to 50 of A-Z, 0-9 and -"))
    .min(1)
    .max(maxCodesPerCall)
    .optional(),
});

/** All names but `code` are assumed. A field left out is not checked. */
export const couponPreviewInput = z.object({
  code: z.string().min(1).max(100),
  customer_id: z.string().max(100).optional(),
  plan_id: z.string().max(100).optional(),
  product_ids: ids.min(1).optional(),
  cart_amount: cents.optional().describe("Minor units: what the eligible items cost together"),
  currency: currency.optional(),
});

/**
 * Reasons for refusing a coupon code. The interface names `coupon_expired` and the two `…_not_eligible`; the rest is
 * assumed.
 */
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

export const createCoupon = defineEndpoint({
  name: "createCoupon",
  method: "POST",
  path: "/coupons",
  summary: "Create a coupon; a promo gets its one code from its name",
  permission: "coupons:write",
  idempotency: "required",
  body: newCouponInput,
  status: 201,
  answer: couponSchema.extend({ codes: z.array(couponCodeSchema) }),
  errors: ["resource_already_exists"],
});

export const listCoupons = defineEndpoint({
  name: "listCoupons",
  method: "GET",
  path: "/coupons",
  summary: "List coupons; archived ones are hidden by default",
  permission: "coupons:read",
  query: pageQuery.extend(sortQuery("name", "redemption_count").shape).extend({
    kind: z.enum(couponKinds).optional(),
    archived: z.enum(["true", "false", "all"]).default("false"),
    // The name of the boolean filter is assumed.
    active: booleanText,
  }),
  answer: listOf(couponSchema),
});

export const validateCoupon = defineEndpoint({
  name: "validateCoupon",
  method: "POST",
  path: "/coupons/validate",
  summary: "Preview a code without redeeming it; an ineligible one is 200 with valid false",
  permission: "coupons:read",
  idempotency: "none",
  body: couponPreviewInput,
  answer: z.union([
    appliedCouponSchema.extend({ valid: z.literal(true) }),
    z.object({ valid: z.literal(false), reason: z.string(), code: z.string() }),
  ]),
  errors: ["too_many_requests"],
});

export const getCoupon = defineEndpoint({
  name: "getCoupon",
  method: "GET",
  path: "/coupons/{id}",
  summary: "Retrieve a coupon",
  permission: "coupons:read",
  params: idParam,
  answer: couponSchema,
  errors: ["resource_not_found"],
});

export const updateCoupon = defineEndpoint({
  name: "updateCoupon",
  method: "PATCH",
  path: "/coupons/{id}",
  summary: "Change a coupon; its terms are locked by the first redemption",
  permission: "coupons:write",
  idempotency: "sent",
  params: idParam,
  body: couponChangeInput,
  answer: couponSchema,
  errors: ["resource_not_found", "resource_already_exists", "field_locked", "invalid_state_transition"],
});

export const deleteCoupon = defineEndpoint({
  name: "deleteCoupon",
  method: "DELETE",
  path: "/coupons/{id}",
  summary: "Archive a coupon",
  permission: "coupons:write",
  idempotency: "sent",
  params: idParam,
  answer: couponSchema,
  errors: ["resource_not_found"],
});

export const archiveCoupon = defineEndpoint({
  name: "archiveCoupon",
  method: "POST",
  path: "/coupons/{id}/archive",
  summary: "Archive a coupon, or bring it back inactive",
  permission: "coupons:write",
  idempotency: "sent",
  params: idParam,
  body: z.object({ archived: z.boolean() }),
  answer: couponSchema,
  errors: ["resource_not_found"],
});

export const mintCouponCodes = defineEndpoint({
  name: "mintCouponCodes",
  method: "POST",
  path: "/coupons/{id}/codes",
  summary: "Mint random codes, or codes of one's own, for a generated coupon",
  permission: "coupons:write",
  idempotency: "required",
  params: idParam,
  body: mintInput,
  status: 201,
  // The answer is assumed.
  answer: z.object({ data: z.array(couponCodeSchema), url: z.string() }),
  errors: ["resource_not_found", "resource_already_exists", "field_locked"],
});

export const listCouponCodes = defineEndpoint({
  name: "listCouponCodes",
  method: "GET",
  path: "/coupons/{id}/codes",
  summary: "List the codes of a coupon",
  permission: "coupons:read",
  params: idParam,
  query: pageQuery,
  answer: listOf(couponCodeSchema),
  errors: ["resource_not_found"],
});
