import { z } from "zod";

import { appliedCouponSchema } from "./applied-coupon.ts";
import { failureCodes } from "./failure-codes.ts";
import { orderTransactionSchema } from "./order-transaction.ts";
import { paymentMethodSummarySchema } from "./payment-method.ts";
import { shippingAddressSchema } from "./shipping-address.ts";
import {
  count,
  currencyCode,
  metadata,
  minorUnits,
  openEnum,
  timestamp,
  wireId,
} from "./wire-types.ts";

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
 * One line of an order. The spec shows `product_id` and `quantity` only. The prices are left
 * unchecked, since a product's price is an object elsewhere in the spec and no column depends on it.
 */
const orderItemSchema = z.looseObject({
  id: z.string().nullish().describe("Assumed"),
  product_id: z.string().nullish(),
  name: z.string().nullish().describe("Assumed"),
  quantity: count.nullish(),
  price: z.unknown().optional().describe("Assumed: unit price in minor units"),
  total: z.unknown().optional().describe("Assumed: minor units"),
});

/** A charge and its refunds (spec, Order). Required here: what every order must show to be whole. */
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
  subscription_cycle: count
    .nullish()
    .describe("Null when the first charge of a subscription fails"),
  attempt_count: count.nullish().describe("In order.failed events only; no GET shows it"),
  next_retry_at: timestamp.nullish().describe("In order.failed events only; no GET shows it"),
  created_at: timestamp,
  updated_at: timestamp.nullish().describe("Absent in an event: the event's created_at stands in"),
});
