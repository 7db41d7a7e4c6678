import { z } from "zod";

import { appliedCouponSchema } from "./applied-coupon.ts";
import { billingCycleSchema } from "./billing-cycle.ts";
import { paymentMethodSummarySchema } from "./payment-method.ts";
import { shippingAddressSchema } from "./shipping-address.ts";
import { count, currencyCode, minorUnits, openEnum, timestamp, wireId } from "./wire-types.ts";

export const subscriptionStatuses = [
  "active",
  "paused",
  "canceled",
  "completed",
  "past_due",
  "failed",
] as const;

/** A customer's plan as a subscription embeds it. */
export const planSummarySchema = z.looseObject({
  id: wireId.nullish(),
  name: z.string().nullish(),
  amount: minorUnits.nullish().describe("Minor units a cycle"),
  currency: currencyCode.nullish(),
});

/** One billed period, embedded by `expand=cycles`. No field is shown; all are assumed. */
const subscriptionCycleSchema = z.looseObject({
  cycle: z.unknown().optional().describe("Assumed: number of the cycle"),
  order_id: z.unknown().optional(),
  status: z.unknown().optional(),
  amount: z.unknown().optional().describe("Assumed: minor units"),
  period_start: z.unknown().optional(),
  period_end: z.unknown().optional(),
  billed_at: z.unknown().optional(),
});

/** A customer billed on a schedule (spec, Subscription). */
export const subscriptionSchema = z.looseObject({
  id: wireId,
  customer_id: wireId,
  plan: planSummarySchema.nullable(),
  status: openEnum(subscriptionStatuses),
  billing_cycle: billingCycleSchema,
  payment_method: paymentMethodSummarySchema.nullish(),
  shipping_address: shippingAddressSchema.nullish(),
  current_period_start: timestamp.nullish(),
  current_period_end: timestamp.nullish(),
  current_billing_cycle: count,
  total_billing_cycles: count.describe("0 means unlimited"),
  next_billing_date: timestamp.nullish(),
  start_date: timestamp.nullish().describe("Never changes"),
  end_date: timestamp.nullish(),
  canceled_at: timestamp.nullish(),
  applied_coupon: appliedCouponSchema.nullish(),
  failure_reason: z.string().nullish().describe("Detailed answer only; name assumed"),
  attempt_count: count.nullish().describe("Detailed answer only; name assumed"),
  next_retry_at: timestamp.nullish().describe("Detailed answer only; name assumed"),
  cycles: z.array(subscriptionCycleSchema).nullish().describe("With expand=cycles; name assumed"),
  created_at: timestamp,
  updated_at: timestamp.nullish().describe("Absent in an event: the event's created_at stands in"),
});
