import { z } from "zod";
import { failureCodes } from "../decline-codes.ts";
import { chargeErrors, defineEndpoint, idParam } from "../endpoint.ts";
import {
  centsRange,
  commaListOf,
  createdAtQuery,
  expandQuery,
  fieldsQuery,
  listOf,
  pageQuery,
  sortQuery,
} from "../lists.ts";
import { currency, metadataInput, plainText, positiveCents, shippingAddressInput } from "../request-fields.ts";
import {
  count,
  currencyCode,
  metadata,
  minorUnits,
  openEnum,
  signedMinorUnits,
  timestamp,
  wireId,
} from "../wire-types.ts";
import { appliedCouponSchema, couponErrors } from "./coupons.ts";
import { shippingAddressSchema } from "./customers.ts";
import { paymentMethodSummarySchema } from "./payment-methods.ts";
import { isPlausibleAmount, transactionStatuses, transactionTypes } from "./transactions.ts";

/**
 * A transaction as an order carries it inline. The interface names `processor_transaction_id` and `attempt_count` only;
 * the others are assumed, so each may be absent.
 */
export const orderTransactionSchema = z
  .looseObject({
    id: wireId.nullish(),
    type: openEnum(transactionTypes).nullish(),
    status: openEnum(transactionStatuses).nullish(),
    amount: signedMinorUnits.nullish().describe("Minor units; negative is possible for refunds only"),
    currency: currencyCode.nullish(),
    processor_transaction_id: z.string().nullish(),
    attempt_count: count.nullish(),
    failure_code: z.string().nullish(),
    failure_reason: z.string().nullish(),
    created_at: timestamp.nullish(),
    updated_at: timestamp.nullish(),
  })
  .refine(isPlausibleAmount, { path: ["amount"], error: "must not be negative" });

/** Orders and transactions alike: `chargeback`, and how it ended. */
export const isChargebackStatus = (status: unknown): boolean =>
  typeof status === "string" && status.startsWith("chargeback");

export const orderStatuses = [
  "pending",
  "succeeded",
  "failed",
  "voided",
  "partially_refunded",
  "refunded",
  "refund_failed",
  "chargeback",
  "chargeback_accepted",
  "chargeback_dismissed",
] as const;

/**
 * One line of an order. The interface documents `product_id` and `quantity` only. The prices are left unchecked, since
 * a product's price is an object elsewhere in the interface and no column depends on it.
 */
const orderItemSchema = z.looseObject({
  id: z.string().nullish().describe("Assumed"),
  product_id: z.string().nullish(),
  name: z.string().nullish().describe("Assumed"),
  quantity: count.nullish(),
  price: z.unknown().optional().describe("Assumed: unit price in minor units"),
  total: z.unknown().optional().describe("Assumed: minor units"),
});

/** A charge and its refunds. The required fields are those without which an order is partial. */
export const orderSchema = z.looseObject({
  id: wireId,
  order_number: z.string().describe("8 alphanumeric characters"),
  customer_id: wireId,
  status: openEnum(orderStatuses),
  items: z.array(orderItemSchema).nullish(),
  subtotal: minorUnits.describe("Minor units, before discounts"),
  discount_amount: minorUnits.describe("Minor units; 0 without a coupon"),
  total: minorUnits.describe("Minor units, net of discount"),
  currency: currencyCode,
  description: z.string().nullish(),
  applied_coupon: appliedCouponSchema.nullish(),
  payment_method: paymentMethodSummarySchema.nullish(),
  transactions: z.array(orderTransactionSchema).nullish().describe("Includes refunds"),
  shipping_address: shippingAddressSchema.nullish(),
  metadata: metadata.nullish(),
  failure_code: openEnum(failureCodes).nullish(),
  failure_reason: z.string().nullish(),
  subscription_id: wireId.nullish().describe("Present on subscription charges"),
  subscription_cycle: count.nullish().describe("Null when the first charge of a subscription fails"),
  attempt_count: count.nullish().describe("In order.failed events only; no GET shows it"),
  next_retry_at: timestamp.nullish().describe("In order.failed events only; no GET shows it"),
  created_at: timestamp,
  updated_at: timestamp.nullish().describe("Absent in an event: the event's created_at stands in"),
});

const maxItems = 100;
const maxQuantity = 1_000_000;

const orderItemInput = z.object({
  product_id: z.string(),
  quantity: z.int().positive().max(maxQuantity),
  price: z.undefined("is not accepted: prices come from the catalogue").optional(),
});

export const createOrder = defineEndpoint({
  name: "createOrder",
  method: "POST",
  path: "/orders",
  summary: "Create an order, which charges the card; a decline is 201 with status failed",
  permission: "orders:write",
  idempotency: "required",
  body: z.object({
    customer_id: z.string(),
    payment_method_id: z.string(),
    items: z.array(orderItemInput).min(1).max(maxItems),
    currency: currency.optional(),
    description: plainText(1000).nullish(),
    shipping_address_id: z.string().optional(),
    shipping_address: shippingAddressInput.optional(),
    metadata: metadataInput.optional(),
    coupon_code: z.string().max(100).optional(),
  }),
  status: 201,
  answer: orderSchema,
  errors: ["resource_not_found", "gateway_error", ...chargeErrors, ...couponErrors],
});

/** The documented filter takes six of the ten statuses; a setting of the sandbox allows the others. */
export const filterableOrderStatuses = [
  "pending",
  "succeeded",
  "failed",
  "voided",
  "partially_refunded",
  "refunded",
] as const;

export const listOrders = defineEndpoint({
  name: "listOrders",
  method: "GET",
  path: "/orders",
  summary: "List orders",
  permission: "orders:read",
  query: pageQuery
    .extend(sortQuery().shape)
    .extend(createdAtQuery.shape)
    .extend(centsRange("total").shape)
    .extend(expandQuery(["customer", "items", "transactions"]).shape)
    .extend(fieldsQuery("orders").shape)
    .extend({
      customer_id: z.string().optional(),
      status: commaListOf(orderStatuses, filterableOrderStatuses),
    }),
  answer: listOf(orderSchema),
});

export const getOrder = defineEndpoint({
  name: "getOrder",
  method: "GET",
  path: "/orders/{id}",
  summary: "Retrieve an order",
  permission: "orders:read",
  params: idParam,
  query: expandQuery(["customer", "transactions"]),
  answer: orderSchema,
  errors: ["resource_not_found"],
});

export const refundOrder = defineEndpoint({
  name: "refundOrder",
  method: "POST",
  path: "/orders/{id}/refund",
  summary: "Refund an amount, or the whole remaining balance",
  permission: "orders:write",
  idempotency: "sent",
  params: idParam,
  body: z.object({ amount: positiveCents.optional() }),
  answer: orderSchema,
  errors: ["resource_not_found", "invalid_state_transition"],
});

export const retryOrder = defineEndpoint({
  name: "retryOrder",
  method: "POST",
  path: "/orders/{id}/retry",
  summary: "Charge the order's own card again, or repeat a failed refund",
  permission: "orders:write",
  idempotency: "recommended",
  params: idParam,
  answer: orderSchema,
  errors: ["resource_not_found", "invalid_state_transition", "replacement_required"],
});
