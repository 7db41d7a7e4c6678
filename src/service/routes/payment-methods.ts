import { z } from "zod";

import { paymentMethodSchema } from "../resources/payment-method.ts";
import { defineEndpoint } from "./endpoint.ts";
import { billingDetails } from "./request-fields.ts";
import { deletion, idParam, noQuery } from "./shared.ts";

export const addPaymentMethod = defineEndpoint({
  name: "addPaymentMethod",
  method: "POST",
  path: "/customers/{id}/payment_methods",
  summary: "Attach a card of the gateway's vault to a customer",
  permission: "customers:write",
  idempotency: "sent",
  params: idParam,
  query: noQuery,
  body: z
    .object({
      billing_id: z.string().min(1).max(255).optional(),
      // Its shape, and that of billing_details, are not shown.
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
  query: noQuery,
  // The name of the field is not shown.
  body: z.object({ replacement_payment_method_id: z.string().optional() }),
  status: 200,
  answer: deletion,
  errors: ["resource_not_found", "resource_in_use", "gateway_delete_failed"],
});
