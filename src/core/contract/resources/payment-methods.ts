import { z } from "zod";
import { defineEndpoint, deletion, idParam } from "../endpoint.ts";
import { billingDetails } from "../request-fields.ts";
import { openEnum, timestamp, wireId } from "../wire-types.ts";

const paymentMethodTypes = ["card"] as const;

/** A stored card. Only the last four digits are ever known. */
export const paymentMethodSchema = z.looseObject({
  id: wireId,
  type: openEnum(paymentMethodTypes).nullish(),
  card: z
    .looseObject({
      last4: z.string().nullish(),
      brand: z.string().nullish().describe("Name assumed"),
      exp: z.string().nullish().describe("MM/YYYY; name assumed"),
    })
    .nullish(),
  customer_id: wireId.nullish(),
  is_default: z.boolean().nullish().describe("Name assumed"),
  created_at: timestamp.nullish(),
});

/** A card as orders, transactions and subscriptions summarise it. */
export const paymentMethodSummarySchema = z.looseObject({
  id: z.string().nullish(),
  card_last_four: z.string().nullish(),
  card_brand: z.string().nullish(),
});

export const addPaymentMethod = defineEndpoint({
  name: "addPaymentMethod",
  method: "POST",
  path: "/customers/{id}/payment_methods",
  summary: "Attach a card of the gateway's vault to a customer",
  permission: "customers:write",
  idempotency: "sent",
  params: idParam,
  body: z
    .object({
      billing_id: z.string().min(1).max(255).optional(),
      // The forms of card_token and billing_details are assumed.
      card_token: z.string().min(1).max(255).optional(),
      billing_details: billingDetails.optional(),
      set_as_default: z.boolean().default(false),
      update_subscriptions: z.boolean().default(false),
    })
    .refine((body) => body.billing_id !== undefined || body.card_token !== undefined, {
      error: "send either billing_id or card_token",
      path: ["billing_id"],
      params: { code: "required_field" },
    })
    .refine((body) => body.billing_id === undefined || body.card_token === undefined, {
      error: "send either billing_id or card_token",
      path: ["billing_id"],
    }),
  status: 201,
  answer: paymentMethodSchema,
  errors: [
    "resource_not_found",
    "invalid_request",
    "merchant_not_configured",
    "resource_already_exists",
    "invalid_state_transition",
  ],
});

export const deletePaymentMethod = defineEndpoint({
  name: "deletePaymentMethod",
  method: "DELETE",
  path: "/customers/{id}/payment_methods/{pm_id}",
  summary: "Remove a card, naming another one where it is needed",
  permission: "customers:write",
  idempotency: "sent",
  params: z.object({ id: z.string(), pm_id: z.string() }),
  // The name of the field is assumed.
  body: z.object({ replacement_payment_method_id: z.string().optional() }),
  answer: deletion,
  errors: ["resource_not_found", "resource_in_use", "gateway_delete_failed"],
});

const digits = (pattern: RegExp, error: string) => z.string().regex(pattern, error);

/**
 * Server-to-server card capture at `{capture_url}`: the only endpoint that takes a card number, and not one of `/v1`.
 * It takes no idempotency key, so that nothing derived from a number is kept.
 */
export const captureCard = defineEndpoint({
  name: "captureCard",
  method: "POST",
  path: "/capture",
  summary: "Capture a card for a customer",
  permission: "customers:write",
  idempotency: "none",
  body: z.object({
    customer_id: z.string(),
    card: z.object({
      number: digits(/^\d{12,19}$/, "must be 12 to 19 digits"),
      exp_month: digits(/^(0?[1-9]|1[0-2])$/, "must be a month from 1 to 12"),
      exp_year: digits(/^20\d{2}$/, "must be a year of four digits"),
      cvc: digits(/^\d{3,4}$/, "must be 3 or 4 digits"),
    }),
    set_as_default: z.boolean().default(false),
    billing_details: billingDetails.optional(),
  }),
  status: 201,
  answer: paymentMethodSchema,
  errors: ["resource_not_found", "invalid_request", "merchant_not_configured"],
});
