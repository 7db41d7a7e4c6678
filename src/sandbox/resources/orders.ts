import * as routes from "../../service/routes/orders.ts";
import { answerWith, plainAnswer } from "../answer.ts";
import { by, listAnswer } from "../http/list.ts";
import type { Mounted } from "../http/mount.ts";
import { mounted } from "../http/mount.ts";
import { resolveAddress } from "../operations/addresses.ts";
import { createOrder } from "../operations/create-order.ts";
import { refundOrder } from "../operations/refund-order.ts";
import { retryOrder } from "../operations/retry-order.ts";
import type { OrderStatus, ProductRecord } from "../records.ts";
import { invalidValue } from "../refusal.ts";
import { priceOf } from "../rules/pricing.ts";
import type { Space } from "../space.ts";
import { expandedOrder, listedOrder, orderBody } from "../wire/order.ts";
import { chargeParties, refuseCoupon } from "./charge-parties.ts";
import { find } from "./find.ts";

const create = mounted(routes.createOrder, (space, { body }, state) => {
  const { customer, card } = chargeParties(state, space, body);
  refuseCoupon(body.coupon_code);
  const products = body.items.map((item, i) => {
    const product = find(state, space, "products", item.product_id, `items.${i}.product_id`);
    assertSold(product, `items.${i}.product_id`);
    return product;
  });
  const currency = currencyOf(products, body.currency);
  const items = body.items.map((item, i) => {
    const product = products[i] as ProductRecord;
    const { id, name, pricing } = product;
    return { product_id: id, name, quantity: item.quantity, price: pricing.amount };
  });
  const price = priceOf(items);
  if (price === null) throw invalidValue("items", "The total is too large.");
  const order = createOrder(space, {
    customerId: customer.id,
    card,
    items,
    price,
    currency,
    description: body.description ?? null,
    shippingAddress: resolveAddress(space, body),
    metadata: body.metadata ?? {},
  });
  return answerWith(201, order, orderBody);
});

function assertSold(product: ProductRecord, param: string): void {
  if (product.deleted || !product.active) throw invalidValue(param, "The product is not sold.");
}

/** The one currency of the products (statements 288, 289). */
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
  const least = query["total[gte]"] ?? 0;
  const most = query["total[lte]"] ?? Infinity;
  return listAnswer(space, space.orders, query, {
    url: "/v1/orders",
    show: (order) => listedOrder(space, order, query.expand),
    sorts: { updated_at: by((order) => order.updated_at) },
    anyOf: {
      ...(customer_id === undefined ? {} : { customer_id: [customer_id] }),
      ...(status === undefined ? {} : { status }),
    },
    test: (order) => order.total >= least && order.total <= most,
    fields: query["fields[orders]"],
  });
});

/** Four statuses cannot be filtered by (statement 320): clients must not rely on it. */
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
  answerWith(
    200,
    refundOrder(space, find(state, space, "orders", params.id), body.amount),
    orderBody,
  ),
);

const retry = mounted(routes.retryOrder, (space, { params }, state) =>
  answerWith(200, retryOrder(space, find(state, space, "orders", params.id)), orderBody),
);

export const orderEndpoints: readonly Mounted[] = [create, list, retrieve, refund, retry];
