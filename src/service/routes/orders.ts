import { z } from "zod";

import { orderSchema, orderStatuses } from "../resources/order.ts";
import { couponErrors } from "./coupon-fields.ts";
import { defineEndpoint } from "./endpoint.ts";
import {
  centsRange,
  commaListOf,
  createdAtQuery,
  expandQuery,
  fieldsQuery,
  listOf,
  pageQuery,
  sortQuery,
} from "./list-query.ts";
import {
  currency,
  metadataInput,
  plainText,
  positiveCents,
  shippingAddressInput,
} from "./request-fields.ts";
import { chargeErrors, idParam, noBody, noParams, noQuery } from "./shared.ts";

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
  params: noParams,
  query: noQuery,
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

/** The list knows six of the ten statuses (spec, `GET /orders`); a switch of the sandbox lets the others pass. */
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
  idempotency: "none",
  params: noParams,
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
  body: noBody,
  status: 200,
  answer: listOf(orderSchema),
  errors: [],
});

export const getOrder = defineEndpoint({
  name: "getOrder",
  method: "GET",
  path: "/orders/{id}",
  summary: "Retrieve an order",
  permission: "orders:read",
  idempotency: "none",
  params: idParam,
  query: expandQuery(["customer", "transactions"]),
  body: noBody,
  status: 200,
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
  query: noQuery,
  body: z.object({ amount: positiveCents.optional() }),
  status: 200,
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
  query: noQuery,
  body: noBody,
  status: 200,
  answer: orderSchema,
  errors: ["resource_not_found", "invalid_state_transition", "replacement_required"],
});
