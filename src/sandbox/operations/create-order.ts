import type { AddressRecord } from "../records/customer.ts";
import type { Metadata } from "../store/table.ts";
import type { OrderItemRecord, OrderRecord } from "../records/order.ts";
import type { PaymentMethodRecord } from "../records/payment-method.ts";
import type { AppliedCoupon } from "../coupon-records.ts";
import type { Price, PricedItem } from "../rules/pricing.ts";
import type { Space } from "../space.ts";
import { announceOutcome } from "./announce-order.ts";
import { chargeOrder } from "./charge-order.ts";

export interface NewOrder {
  customerId: string;
  card: PaymentMethodRecord;
  items: readonly PricedItem[];
  price: Price;
  /** The snapshot of the coupon that gave the price its discount. */
  appliedCoupon: AppliedCoupon | null;
  currency: string;
  description: string | null;
  shippingAddress: AddressRecord | null;
  metadata: Metadata;
  /** For a charge of a subscription. The cycle of a first charge is null until it is approved (spec, Order). */
  subscription?: { id: string; cycle: number };
  /** What `order.failed` says beside the order, should the charge be declined. */
  failureDetails?: (order: OrderRecord) => { attempt_count: number; next_retry_at: string | null };
}

/**
 * Creates an order, which is its charge: `pending`, then `succeeded` or `failed`; a decline is no error.
 * Announces the order and its outcome (spec, Order transitions; both events by statement 302).
 */
export function createOrder(space: Space, input: NewOrder): OrderRecord {
  return completeOrder(space, openOrder(space, input), input);
}

/** The first half: the order as it is before the gateway has answered. */
export function openOrder(space: Space, input: NewOrder): OrderRecord {
  const { subscription } = input;
  const at = space.time.iso();
  const pending: OrderRecord = {
    id: space.ids.uuid(),
    order_number: space.ids.orderNumber(),
    customer_id: input.customerId,
    status: "pending",
    items: input.items.map((item) => orderItem(space, item)),
    subtotal: input.price.subtotal,
    discount_amount: input.price.discount_amount,
    total: input.price.total,
    currency: input.currency,
    description: input.description,
    applied_coupon: input.appliedCoupon,
    payment_method: input.card.summary,
    transactions: [],
    shipping_address: input.shippingAddress,
    metadata: input.metadata,
    failure_code: null,
    failure_reason: null,
    subscription_id: subscription?.id ?? null,
    subscription_cycle: isFirstCharge(input) ? null : (subscription?.cycle ?? null),
    created_at: at,
    updated_at: at,
  };
  space.orders.insert(pending);
  if (showsPending(space)) space.emit("order.created", { kind: "order", record: pending });
  return pending;
}

/** The second half: what the gateway answered. */
export function completeOrder(
  space: Space,
  opened: OrderRecord,
  input: Pick<NewOrder, "card" | "subscription" | "failureDetails">,
): OrderRecord {
  const order = chargeOrder(
    space,
    space.orders.get(opened.id) ?? opened,
    input.card,
    isFirstCharge(input) ? { subscription_cycle: 1 } : {},
  );
  if (!showsPending(space)) space.emit("order.created", { kind: "order", record: order });
  announceOutcome(space, order, input.failureDetails?.(order));
  return order;
}

function isFirstCharge({ subscription }: Pick<NewOrder, "subscription">): boolean {
  return subscription?.cycle === 1;
}

function showsPending(space: Space): boolean {
  return space.settings().order_created_snapshot === "pending";
}

function orderItem(space: Space, item: PricedItem): OrderItemRecord {
  return {
    id: space.ids.uuid(),
    product_id: item.product_id,
    name: item.name,
    quantity: item.quantity,
    price: item.price,
    total: item.price * item.quantity,
  };
}
