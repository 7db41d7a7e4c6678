import { z } from "zod";

import { appliedCouponSchema, couponKinds } from "../resources/applied-coupon.ts";
import { couponCodeSchema, couponSchema } from "../resources/coupon.ts";
import {
  couponChangeInput,
  couponPreviewInput,
  mintInput,
  newCouponInput,
} from "./coupon-fields.ts";
import { defineEndpoint } from "./endpoint.ts";
import { booleanText, listOf, pageQuery, sortQuery } from "./list-query.ts";
import { idParam, noBody, noParams, noQuery } from "./shared.ts";

export const createCoupon = defineEndpoint({
  name: "createCoupon",
  method: "POST",
  path: "/coupons",
  summary: "Create a coupon; a promo gets its one code from its name",
  permission: "coupons:write",
  idempotency: "required",
  params: noParams,
  query: noQuery,
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
  idempotency: "none",
  params: noParams,
  query: pageQuery.extend(sortQuery("name", "redemption_count").shape).extend({
    kind: z.enum(couponKinds).optional(),
    archived: z.enum(["true", "false", "all"]).default("false"),
    // The name of the boolean filter is not shown.
    active: booleanText,
  }),
  body: noBody,
  status: 200,
  answer: listOf(couponSchema),
  errors: [],
});

export const validateCoupon = defineEndpoint({
  name: "validateCoupon",
  method: "POST",
  path: "/coupons/validate",
  summary: "Preview a code without redeeming it; an ineligible one is 200 with valid false",
  permission: "coupons:read",
  idempotency: "none",
  params: noParams,
  query: noQuery,
  body: couponPreviewInput,
  status: 200,
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
  idempotency: "none",
  params: idParam,
  query: noQuery,
  body: noBody,
  status: 200,
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
  query: noQuery,
  body: couponChangeInput,
  status: 200,
  answer: couponSchema,
  errors: [
    "resource_not_found",
    "resource_already_exists",
    "field_locked",
    "invalid_state_transition",
  ],
});

export const deleteCoupon = defineEndpoint({
  name: "deleteCoupon",
  method: "DELETE",
  path: "/coupons/{id}",
  summary: "Archive a coupon",
  permission: "coupons:write",
  idempotency: "sent",
  params: idParam,
  query: noQuery,
  body: noBody,
  status: 200,
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
  query: noQuery,
  body: z.object({ archived: z.boolean() }),
  status: 200,
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
  query: noQuery,
  body: mintInput,
  status: 201,
  // The answer is not shown.
  answer: z.object({ data: z.array(couponCodeSchema), url: z.string() }),
  errors: ["resource_not_found", "resource_already_exists", "field_locked"],
});

export const listCouponCodes = defineEndpoint({
  name: "listCouponCodes",
  method: "GET",
  path: "/coupons/{id}/codes",
  summary: "List the codes of a coupon",
  permission: "coupons:read",
  idempotency: "none",
  params: idParam,
  query: pageQuery,
  body: noBody,
  status: 200,
  answer: listOf(couponCodeSchema),
  errors: ["resource_not_found"],
});
