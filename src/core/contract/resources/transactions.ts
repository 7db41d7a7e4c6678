import { z } from "zod";
import { defineEndpoint, idParam } from "../endpoint.ts";
import { centsRange, createdAtQuery, expandQuery, fieldsQuery, listOf, pageQuery, sortQuery } from "../lists.ts";
import { currencyCode, metadata, openEnum, signedMinorUnits, timestamp, wireId } from "../wire-types.ts";
import { paymentMethodSummarySchema } from "./payment-methods.ts";

export const transactionTypes = ["sale", "refund", "auth"] as const;

export const transactionStatuses = ["pending", "in_progress", "succeeded", "failed", "voided", "chargeback"] as const;

/**
 * Whether a transaction of this type may have this amount. The interface does not document the sign of a refund's
 * amount, so only sales and authorisations are known to be at least 0.
 */
export function isPlausibleAmount(transaction: {
  type?: string | null | undefined;
  amount?: number | null | undefined;
}): boolean {
  const { type, amount } = transaction;
  return typeof amount !== "number" || amount >= 0 || (type !== "sale" && type !== "auth");
}

const processorText = z.string().nullish();

/** One payment operation. Read-only at the service. */
export const transactionSchema = z
  .looseObject({
    id: wireId,
    type: openEnum(transactionTypes),
    status: openEnum(transactionStatuses),
    amount: signedMinorUnits.describe("Minor units; negative is possible for refunds only"),
    currency: currencyCode,
    customer_id: wireId,
    order_id: wireId.nullish().describe("Null is expected for authorisations only"),
    payment_method: paymentMethodSummarySchema.nullish(),
    processor_response: z
      .looseObject({
        transaction_id: processorText,
        authorization_code: processorText,
        avs_result: processorText,
        cvv_result: processorText,
        response_code: processorText,
        response_text: processorText,
      })
      .nullish(),
    failure_reason: z.string().nullish(),
    description: z.string().nullish(),
    metadata: metadata.nullish(),
    created_at: timestamp,
    updated_at: timestamp.nullish().describe("Absent in an event: the event's created_at stands in"),
  })
  .refine(isPlausibleAmount, { path: ["amount"], error: "must not be negative" });

const expandable = expandQuery(["customer", "order"]);

export const listTransactions = defineEndpoint({
  name: "listTransactions",
  method: "GET",
  path: "/transactions",
  summary: "List transactions",
  permission: "transactions:read",
  query: pageQuery
    .extend(sortQuery().shape)
    .extend(createdAtQuery.shape)
    .extend(centsRange("amount").shape)
    .extend(expandable.shape)
    .extend(fieldsQuery("transactions").shape)
    .extend({
      customer_id: z.string().optional(),
      order_id: z.string().optional(),
      status: z.enum(transactionStatuses).optional(),
      type: z.enum(transactionTypes).optional(),
    }),
  answer: listOf(transactionSchema),
});

export const getTransaction = defineEndpoint({
  name: "getTransaction",
  method: "GET",
  path: "/transactions/{id}",
  summary: "Retrieve a transaction",
  permission: "transactions:read",
  params: idParam,
  query: expandable,
  answer: transactionSchema,
  errors: ["resource_not_found"],
});
