import { redeem } from "../resources/coupons/redeem-coupon.ts";
import { createOrder } from "../resources/orders/charge-order.ts";
import {
  acceptChargeback,
  dismissChargeback,
  openChargeback,
  refundOrder,
  retryOrder,
  voidOrder,
} from "../resources/orders/order-transitions.ts";
import { type OrderRecord, priceOf } from "../resources/orders/order.ts";
import type { PaymentMethodRecord } from "../resources/payment-methods/payment-method.ts";
import type { ProductRecord } from "../resources/products/product.ts";
import type { Market } from "./market.ts";
import { type TrafficContext, between, happens, dayMs, pick, pickWeighted } from "./script.ts";

const decliningCards = [
  ["card_visa_declined", 3],
  ["card_insufficient_funds", 4],
  ["card_expired", 2],
  ["card_incorrect_cvv", 1],
  ["card_processing_error", 1],
  ["card_do_not_honor", 1],
  ["card_lost_stolen", 1],
  ["card_declined_once", 4],
  ["card_declined_twice", 2],
] as const;

const retryRate = 0.5;
const voidRate = 0.01;

/** The number of orders of each kind; the kinds together are at most `orders`. */
export interface ShoppingOptions {
  orders: number;
  refunds: number;
  declines: number;
  chargebacks: number;
}

/**
 * Plans one-time orders over the whole span: most succeed, some are declined, refunded, voided or charged back later.
 */
export function planShopping(stage: TrafficContext, market: Market, wish: ShoppingOptions): void {
  const { random } = stage;
  const kinds = shuffled(stage, [
    ...Array<() => void>(wish.declines).fill(() => declinedOrder(stage, market)),
    ...Array<() => void>(wish.chargebacks).fill(() => disputedOrder(stage, market)),
    ...Array<() => void>(wish.refunds).fill(() => refundedOrder(stage, market)),
    ...Array<() => void>(wish.orders - wish.declines - wish.chargebacks - wish.refunds).fill(() =>
      plainOrder(stage, market),
    ),
  ]);
  const span = stage.endMs - stage.startMs;
  for (const place of kinds) stage.at(stage.startMs + span * random(), place);
}

function shuffled<T>({ random }: TrafficContext, entries: T[]): T[] {
  for (let i = entries.length - 1; i > 0; i--) {
    const other = Math.floor(random() * (i + 1));
    [entries[i], entries[other]] = [entries[other] as T, entries[i] as T];
  }
  return entries;
}

function buy(stage: TrafficContext, market: Market, token?: string): OrderRecord {
  const { counts } = stage;
  const { people } = market;
  const customer = people.anyone();
  const card = token === undefined ? people.goodCard(customer) : people.cardOf(customer, token);
  const placed = place(stage, market, customer.id, card);
  counts.orders += 1;
  if (placed.status === "failed") counts.declines += 1;
  return placed;
}

function place(
  stage: TrafficContext,
  { campaigns }: Market,
  customerId: string,
  card: PaymentMethodRecord,
): OrderRecord {
  const { space, random } = stage;
  const currency = happens(random, 0.85) ? "usd" : "eur";
  const offered = space.products.all().filter((product) => product.active && product.pricing.currency === currency);
  const items = Array.from({ length: 1 + Math.floor(random() * 3) }, () => {
    const product = pick(random, offered as [ProductRecord, ...ProductRecord[]]);
    return {
      product_id: product.id,
      name: product.name,
      quantity: 1 + Math.floor(random() * 3),
      price: product.pricing.amount,
    };
  });
  const quote = campaigns.forItems(customerId, items, currency);
  const price = priceOf(items, quote?.applied.discount_amount);
  if (price === null) throw new Error("the catalogue's prices are no safe integers");
  const order = createOrder(space, {
    customerId,
    card,
    items,
    price,
    appliedCoupon: quote?.applied ?? null,
    currency,
    description: happens(random, 0.2) ? "Traffic of the sandbox" : null,
    shippingAddress: space.customers.get(customerId)?.shipping_address ?? null,
    metadata: happens(random, 0.1) ? { campaign: "autumn" } : {},
  });
  if (quote !== null) {
    redeem(space, quote, order);
    stage.counts.redemptions += 1;
  }
  return order;
}

function later(stage: TrafficContext, leastDays: number, mostDays: number, act: () => void): void {
  stage.at(stage.space.time.nowMs() + between(stage.random, leastDays, mostDays) * dayMs, act);
}

/** Reads the order again, since it may have changed. */
function withOrder(stage: TrafficContext, id: string, act: (order: OrderRecord) => void): void {
  const current = stage.space.orders.get(id);
  if (current !== undefined) act(current);
}

function plainOrder(stage: TrafficContext, market: Market): void {
  const { id } = buy(stage, market);
  if (!happens(stage.random, voidRate)) return;
  later(stage, 0, 0.2, () =>
    withOrder(stage, id, (current) => {
      voidOrder(stage.space, current);
      stage.counts.voids += 1;
    }),
  );
}

function declinedOrder(stage: TrafficContext, market: Market): void {
  const { id } = buy(stage, market, pickWeighted(stage.random, decliningCards));
  const retry = () =>
    withOrder(stage, id, (current) => {
      retryOrder(stage.space, current);
      stage.counts.retries += 1;
    });
  if (!happens(stage.random, retryRate)) return;
  later(stage, 0, 2, retry);
  if (happens(stage.random, retryRate)) later(stage, 2, 5, retry);
}

function refundedOrder(stage: TrafficContext, market: Market): void {
  const { random } = stage;
  const token = happens(random, 0.05) ? "card_refund_failed_once" : undefined;
  const { id, total } = buy(stage, market, token);
  const refund = (amount?: number) => () =>
    withOrder(stage, id, (current) => {
      refundOrder(stage.space, current, amount);
      stage.counts.refunds += 1;
    });
  const part = Math.max(1, Math.floor(total * between(random, 0.1, 0.6)));
  const isTied = happens(random, stage.tieRate);
  if (isTied) stage.tied(refund(part));
  if (token !== undefined) retryFailedRefund(stage, id);
  const kind = pickWeighted(random, [
    ["full", 5],
    ["partial", 3],
    ["partial, then the rest", 2],
  ] as const);
  if (kind === "full") later(stage, 0, 8, refund());
  else if (!isTied) later(stage, 0, 4, refund(part));
  if (kind === "partial, then the rest") later(stage, 4, 9, refund());
}

function retryFailedRefund(stage: TrafficContext, id: string): void {
  if (!happens(stage.random, retryRate)) return;
  later(stage, 8, 12, () =>
    withOrder(stage, id, (current) => {
      if (current.status !== "refund_failed") return;
      retryOrder(stage.space, current);
      stage.counts.retries += 1;
    }),
  );
}

function disputedOrder(stage: TrafficContext, market: Market): void {
  const { random, space, counts } = stage;
  const byCard = happens(random, 0.3);
  const { id, total } = buy(stage, market, byCard ? "card_chargeback" : undefined);
  if (byCard) {
    counts.chargebacks += 1;
  } else {
    if (happens(random, 0.15)) {
      later(stage, 0, 1, () =>
        withOrder(stage, id, (current) => {
          refundOrder(space, current, Math.max(1, Math.floor(total / 4)));
          counts.refunds += 1;
        }),
      );
    }
    later(stage, 1, 6, () =>
      withOrder(stage, id, (current) => {
        openChargeback(space, current);
        counts.chargebacks += 1;
      }),
    );
  }
  const verdict = pick(random, ["accepted", "dismissed", "open"]);
  if (verdict === "open") return;
  const decide = verdict === "accepted" ? acceptChargeback : dismissChargeback;
  later(stage, 7, 14, () => withOrder(stage, id, (current) => void decide(space, current)));
}
