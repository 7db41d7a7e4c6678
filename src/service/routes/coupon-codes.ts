import { z } from "zod";

import { couponCodeSchema } from "../resources/coupon.ts";
import { mintInput } from "./coupon-fields.ts";
import { defineEndpoint } from "./endpoint.ts";
import { listOf, pageQuery } from "./list-query.ts";
import { idParam, noBody, noQuery } from "./shared.ts";

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
