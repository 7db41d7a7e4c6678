import { z } from "zod";
import { chargeErrors, defineEndpoint, idParam, noBody, noQuery } from "../endpoint.ts";
import { expandQuery, fieldsQuery, listOf, pageQuery, sortQuery } from "../lists.ts";
import { billingCycleInput, isoDate, plainText, shippingAddressInput } from "../request-fields.ts";
import { count, currencyCode, minorUnits, openEnum, timestamp, wireId } from "../wire-types.ts";
import { appliedCouponSchema, couponErrors } from "./coupons.ts";
import { shippingAddressSchema } from "./customers.ts";
import { paymentMethodSummarySchema } from "./payment-methods.ts";
import { billingCycleSchema } from "./plans.ts";

export const subscriptionStatuses = ["active", "paused", "canceled", "completed", "past_due", "failed"] as const;

/** A customer's plan as a subscription embeds it. */
export const planSummarySchema = z.looseObject({
  id: wireId.nullish(),
  name: z.string().nullish(),
  amount: minorUnits.nullish().describe("Minor units a cycle"),
  currency: currencyCode.nullish(),
});

/** One billed period, embedded by `expand=cycles`. No field is documented; all are assumed. */
const subscriptionCycleSchema = z.looseObject({
  cycle: z.unknown().optional().describe("Assumed: number of the cycle"),
  order_id: z.unknown().optional(),
  status: z.unknown().optional(),
  amount: z.unknown().optional().describe("Assumed: minor units"),
  period_start: z.unknown().optional(),
  period_end: z.unknown().optional(),
  billed_at: z.unknown().optional(),
});

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

const expandable = expandQuery(["customer", "plan", "cycles"]);

export const createSubscription = defineEndpoint({
  name: "createSubscription",
  method: "POST",
  path: "/subscriptions",
  summary: "Create a subscription, which charges the first cycle at once",
  permission: "subscriptions:write",
  idempotency: "required",
  body: z.object({
    customer_id: z.string(),
    plan_id: z.string(),
    payment_method_id: z.string(),
    billing_cycle: billingCycleInput,
    end_date: isoDate.optional(),
    billing_cycles: z.int().nonnegative().max(10_000).optional(),
    shipping_address_id: z.string().optional(),
    shipping_address: shippingAddressInput.optional(),
    shipping_option_id: plainText(100).optional(),
    coupon_code: z.string().max(100).optional(),
  }),
  status: 201,
  answer: subscriptionSchema,
  errors: ["resource_not_found", ...chargeErrors, ...couponErrors],
});

export const listSubscriptions = defineEndpoint({
  name: "listSubscriptions",
  method: "GET",
  path: "/subscriptions",
  summary: "List subscriptions",
  permission: "subscriptions:read",
  query: pageQuery
    .extend(sortQuery().shape)
    .extend(expandable.shape)
    .extend(fieldsQuery("subscriptions").shape)
    .extend({
      customer_id: z.string().optional(),
      plan_id: z.string().optional(),
      // The service does not filter by `failed`.
      status: z.enum(["active", "paused", "canceled", "completed", "past_due"]).optional(),
    }),
  answer: listOf(subscriptionSchema),
});

export const getSubscription = defineEndpoint({
  name: "getSubscription",
  method: "GET",
  path: "/subscriptions/{id}",
  summary: "Retrieve a subscription",
  permission: "subscriptions:read",
  params: idParam,
  query: expandable,
  answer: subscriptionSchema,
  errors: ["resource_not_found"],
});

export const updateSubscription = defineEndpoint({
  name: "updateSubscription",
  method: "PATCH",
  path: "/subscriptions/{id}",
  summary: "Change the card, the address or the billing cycle",
  permission: "subscriptions:write",
  idempotency: "sent",
  params: idParam,
  body: z.object({
    payment_method_id: z.string().optional(),
    shipping_address_id: z.string().optional(),
    shipping_address: shippingAddressInput.optional(),
    shipping_option_id: plainText(100).optional(),
    billing_cycle: billingCycleInput.optional(),
  }),
  answer: subscriptionSchema,
  errors: ["resource_not_found", "subscription_not_modifiable"],
});

export const cancelSubscription = defineEndpoint({
  name: "cancelSubscription",
  method: "DELETE",
  path: "/subscriptions/{id}",
  summary: "Cancel at once and for good",
  permission: "subscriptions:write",
  idempotency: "sent",
  params: idParam,
  answer: z.object({ id: wireId, status: z.literal("canceled"), canceled_at: timestamp }),
  errors: ["resource_not_found", "already_canceled", "subscription_completed"],
});

/** Pause and resume are documented, but the service answers 501. */
function unimplementedEndpoint<const Action extends "pause" | "resume">(action: Action) {
  return defineEndpoint({
    name: `${action}Subscription`,
    method: "POST",
    path: `/subscriptions/{id}/${action}`,
    summary: "Not implemented by the service: 501",
    permission: "subscriptions:write",
    idempotency: "none",
    params: idParam,
    query: noQuery,
    body: noBody,
    status: 200,
    answer: z.never(),
    errors: ["resource_not_found", "not_implemented"],
  });
}

export const pauseSubscription = unimplementedEndpoint("pause");
export const resumeSubscription = unimplementedEndpoint("resume");
