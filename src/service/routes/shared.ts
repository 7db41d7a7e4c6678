import { z } from "zod";

/** Path parameters are opaque: an id that is no UUID is simply unknown (404). */
export const idParam = z.object({ id: z.string() });
export const noParams = z.object({});
export const noQuery = z.object({});

/** Endpoints without a body read none, whatever is sent. */
export const noBody = z.unknown().transform(() => undefined);

export const deletion = z.object({
  id: z.string(),
  deleted: z.literal(true),
  message: z.string(),
});

/** Codes of everything that charges a stored card. */
export const chargeErrors = [
  "customer_not_configured",
  "merchant_not_configured",
  "replacement_required",
] as const;

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
