import { setTimeout as sleep } from "node:timers/promises";
import * as routes from "../../../../core/contract/resources/orders.ts";
import { type Answer, answerWith, plainAnswer } from "../../engine/answer.ts";
import { GatewayTimeout, ApiError, invalidValue } from "../../engine/api-error.ts";
import type { Space } from "../../engine/space.ts";
import { isWithin, listAnswer } from "../../http/list.ts";
import { type Mounted, mounted } from "../../http/mount.ts";
import { quoteForItems, redeem } from "../coupons/redeem-coupon.ts";
import { resolveAddress } from "../customers/customer-operations.ts";
import { chargeParties, find } from "../find.ts";
import type { PaymentMethodRecord } from "../payment-methods/payment-method.ts";
import type { ProductRecord } from "../products/product.ts";
import { chargedCard, completeOrder, openOrder } from "./charge-order.ts";
import { refundOrder, retryOrder } from "./order-transitions.ts";
import { type OrderRecord, type OrderStatus, expandedOrder, listedOrder, orderBody, priceOf } from "./order.ts";

const create = mounted(routes.createOrder, (space, { body, resumes }, state) => {
  const pending = resumes === null ? undefined : space.orders.get(resumes);
  if (pending !== undefined) return charge(space, pending, chargedCard(space, pending));
  const { customer, card } = chargeParties(state, space, body);
  const products = body.items.map((item, i) => {
    const product = find(state, space, "products", item.product_id, `items.${i}.product_id`);
    assertSold(product, `items.${i}.product_id`);
    return product;
  });
  assertShippable(products, body);
  const currency = currencyOf(products, body.currency);
  const items = body.items.map((item, i) => {
    const product = products[i] as ProductRecord;
    const { id, name, pricing } = product;
    return { product_id: id, name, quantity: item.quantity, price: pricing.amount };
  });
  const quote =
    body.coupon_code === undefined
      ? null
      : quoteForItems(space, { code: body.coupon_code, customerId: customer.id, items, currency });
  const price = priceOf(items, quote?.applied.discount_amount);
  if (price === null) throw invalidValue("items", "The total is too large.");
  const opened = openOrder(space, {
    customerId: customer.id,
    card,
    items,
    price,
    appliedCoupon: quote?.applied ?? null,
    currency,
    description: body.description ?? null,
    shippingAddress: resolveAddress(space, customer.id, body),
    metadata: body.metadata ?? {},
  });
  if (quote !== null) redeem(space, quote, opened);
  return charge(space, opened, card);
});

/** Submits the payment of a pending order. The settings decide how fast the gateway answers, and whether it does. */
function charge(space: Space, pending: OrderRecord, card: PaymentMethodRecord): Answer | Promise<Answer> {
  const { gateway_delay_ms, gateway_times_out } = space.settings();
  if (gateway_times_out) throw new GatewayTimeout(pending.id);
  const charged = () => answerWith(201, completeOrder(space, pending, { card }), orderBody);
  return gateway_delay_ms === 0 ? charged() : sleep(gateway_delay_ms).then(charged);
}

function assertSold(product: ProductRecord, param: string): void {
  if (product.deleted || !product.active) throw invalidValue(param, "The product is not sold.");
}

/** An order with products that are shipped needs an address. */
function assertShippable(
  products: readonly ProductRecord[],
  sent: { shipping_address_id?: string | undefined; shipping_address?: unknown },
): void {
  if (sent.shipping_address_id !== undefined || sent.shipping_address !== undefined) return;
  if (products.every(({ requires_shipping }) => !requires_shipping)) return;
  const message = "A product requires shipping: send shipping_address or shipping_address_id.";
  throw new ApiError("required_field", message, "shipping_address");
}

/** The currency that all the products share. */
function currencyOf(products: readonly ProductRecord[], sent: string | undefined): string {
  const currencies = new Set(products.map((product) => product.pricing.currency));
  const [currency] = currencies;
  if (currency === undefined || currencies.size > 1) {
    throw invalidValue("items", "The products have different currencies.");
  }
  if (sent !== undefined && sent !== currency) {
    throw invalidValue("currency", `The products are priced in ${currency}.`);
  }
  return currency;
}

const list = mounted(routes.listOrders, (space, { query }) => {
  const { customer_id, status } = query;
  if (status !== undefined) assertFilterable(space, status);
  return listAnswer(space, space.orders, query, {
    url: `/v1${routes.listOrders.path}`,
    show: (order) => listedOrder(space, order, query.expand),
    anyOf: {
      ...(customer_id === undefined ? {} : { customer_id: [customer_id] }),
      ...(status === undefined ? {} : { status }),
    },
    test: ({ total }) => isWithin(total, query["total[gte]"], query["total[lte]"]),
    fields: query["fields[orders]"],
  });
});

/**
 * Refuses the four statuses that the interface has no filter for, so that clients do not rely on them, unless the
 * setting `unfilterable_order_statuses` is `accepted`.
 */
function assertFilterable(space: Space, statuses: readonly OrderStatus[]): void {
  if (space.settings().unfilterable_order_statuses === "accepted") return;
  const known: readonly OrderStatus[] = routes.filterableOrderStatuses;
  const refused = statuses.find((status) => !known.includes(status));
  if (refused !== undefined) throw invalidValue("status", `cannot filter by ${refused}`);
}

const retrieve = mounted(routes.getOrder, (space, { params, query }, state) =>
  plainAnswer(200, expandedOrder(space, find(state, space, "orders", params.id), query.expand)),
);

const refund = mounted(routes.refundOrder, (space, { params, body }, state) =>
  answerWith(200, refundOrder(space, find(state, space, "orders", params.id), body.amount), orderBody),
);

const retry = mounted(routes.retryOrder, (space, { params }, state) =>
  answerWith(200, retryOrder(space, find(state, space, "orders", params.id)), orderBody),
);

export const orderEndpoints: readonly Mounted[] = [create, list, retrieve, refund, retry];
