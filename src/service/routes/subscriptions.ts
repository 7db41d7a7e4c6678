import { z } from "zod";

import { subscriptionSchema } from "../resources/subscription.ts";
import { timestamp, wireId } from "../resources/wire-types.ts";
import { couponErrors } from "./coupon-fields.ts";
import { defineEndpoint } from "./endpoint.ts";
import { expandQuery, fieldsQuery, listOf, pageQuery, sortQuery } from "./list-query.ts";
import { billingCycleInput, isoDate, plainText, shippingAddressInput } from "./request-fields.ts";
import { chargeErrors, idParam, noBody, noParams, noQuery } from "./shared.ts";

const expandable = expandQuery(["customer", "plan", "cycles"]);

export const createSubscription = defineEndpoint({
  name: "createSubscription",
  method: "POST",
  path: "/subscriptions",
  summary: "Create a subscription, which charges the first cycle at once",
  permission: "subscriptions:write",
  idempotency: "required",
  params: noParams,
  query: noQuery,
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
  idempotency: "none",
  params: noParams,
  query: pageQuery
    .extend(sortQuery().shape)
    .extend(expandable.shape)
    .extend(fieldsQuery("subscriptions").shape)
    .extend({
      customer_id: z.string().optional(),
      plan_id: z.string().optional(),
      // The filter does not know `failed` (spec, `GET /subscriptions`).
      status: z.enum(["active", "paused", "canceled", "completed", "past_due"]).optional(),
    }),
  body: noBody,
  status: 200,
  answer: listOf(subscriptionSchema),
  errors: [],
});

export const getSubscription = defineEndpoint({
  name: "getSubscription",
  method: "GET",
  path: "/subscriptions/{id}",
  summary: "Retrieve a subscription",
  permission: "subscriptions:read",
  idempotency: "none",
  params: idParam,
  query: expandable,
  body: noBody,
  status: 200,
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
  query: noQuery,
  body: z.object({
    payment_method_id: z.string().optional(),
    shipping_address_id: z.string().optional(),
    shipping_address: shippingAddressInput.optional(),
    shipping_option_id: plainText(100).optional(),
    billing_cycle: billingCycleInput.optional(),
  }),
  status: 200,
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
  query: noQuery,
  body: noBody,
  status: 200,
  answer: z.object({ id: wireId, status: z.literal("canceled"), canceled_at: timestamp }),
  errors: ["resource_not_found", "already_canceled", "subscription_completed"],
});

/** Pause and resume exist and answer 501 (spec, Subscriptions). */
function unbuilt<const Action extends "pause" | "resume">(action: Action) {
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

export const pauseSubscription = unbuilt("pause");
export const resumeSubscription = unbuilt("resume");
