import { z } from "zod";

import { paymentMethodSchema } from "../resources/payment-method.ts";
import { defineEndpoint } from "./endpoint.ts";
import { billingDetails } from "./request-fields.ts";
import { noParams, noQuery } from "./shared.ts";

const digits = (pattern: RegExp, error: string) => z.string().regex(pattern, error);

/**
 * Server-to-server card capture at `{capture_url}` (spec, Card data and vaulting): the only place that takes a card number. It
 * is no endpoint of `/v1`. Without idempotency keys, so that nothing derived from a number is kept.
 */
export const captureCard = defineEndpoint({
  name: "captureCard",
  method: "POST",
  path: "/capture",
  summary: "Capture a card for a customer",
  permission: "customers:write",
  idempotency: "none",
  params: noParams,
  query: noQuery,
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
