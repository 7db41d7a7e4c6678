import type { OrderRecord } from "../records/order.ts";
import type { PaymentMethodRecord } from "../records/payment-method.ts";
import type { TransactionRecord } from "../records/transaction.ts";
import { Refusal } from "../refusal.ts";
import { outcomeOf, testCards } from "../rules/cards.ts";
import type { Space } from "../space.ts";
import { confirmsLater, scheduleSettlement } from "./settle-sale.ts";

/** How often an order's card was charged. */
export function attemptsOf(order: OrderRecord): number {
  return order.transactions.filter((transaction) => transaction.type === "sale").length;
}

/** The card of an order that is to be charged. Refused when it was removed since. */
export function chargedCard(space: Space, order: OrderRecord): PaymentMethodRecord {
  const card = space.paymentMethods.get(order.payment_method.id);
  if (card !== undefined) return card;
  const message = "The order's payment method no longer exists: collect the card again.";
  throw new Refusal("replacement_required", message, "payment_method_id");
}

/**
 * Submits a sale for a pending or failed order and stores the outcome: `succeeded`, or `failed` with code and reason. Each attempt
 * is a transaction of its own. Where a coupon leaves nothing to pay it succeeds without asking the gateway (statement 316).
 * Announces nothing: that is for whoever knows why the order was charged.
 */
export function chargeOrder(
  space: Space,
  order: OrderRecord,
  card: PaymentMethodRecord,
  onApproval: Partial<Pick<OrderRecord, "subscription_cycle">> = {},
): OrderRecord {
  const isFree = order.total === 0;
  const behaviour = isFree ? undefined : testCards[card.token];
  const declined = outcomeOf(behaviour?.charges ?? [], card.used.charges);
  if (!isFree) card.used.charges += 1;
  const at = space.touch(order.updated_at);
  const sale: TransactionRecord = {
    id: space.ids.uuid(),
    type: "sale",
    status:
      declined !== null ? "failed" : confirmsLater(space) && !isFree ? "pending" : "succeeded",
    amount: order.total,
    currency: order.currency,
    customer_id: order.customer_id,
    order_id: order.id,
    payment_method: card.summary,
    processor_transaction_id: isFree ? null : space.ids.processorId(),
    authorization_code: isFree || declined !== null ? null : space.ids.authorizationCode(),
    attempt_count: attemptsOf(order) + 1,
    failure_code: declined?.code ?? null,
    failure_reason: declined?.reason ?? null,
    description: order.description,
    metadata: order.metadata,
    // Not `at`, which may lie a millisecond ahead: nothing is sold after a subscription ended (statement 528).
    created_at: space.time.iso(),
    updated_at: at,
  };
  const charged = withCharge(order, sale, onApproval.subscription_cycle);
  space.transactions.insert(sale);
  space.orders.replace(charged);
  if (sale.status === "pending") scheduleSettlement(space, sale);
  if (declined === null && behaviour?.chargeback === true) {
    const delayMs = space.settings().chargeback_delay_seconds * 1000;
    space.schedule("chargeback", order.id, space.time.nowMs() + delayMs);
  }
  return charged;
}

/** Field by field: this is the hot path, and objects made by spreading take three times the memory. */
function withCharge(
  order: OrderRecord,
  sale: TransactionRecord,
  cycleOnApproval: number | null | undefined,
): OrderRecord {
  const isApproved = sale.status !== "failed";
  return {
    id: order.id,
    order_number: order.order_number,
    customer_id: order.customer_id,
    status: isApproved ? "succeeded" : "failed",
    items: order.items,
    subtotal: order.subtotal,
    discount_amount: order.discount_amount,
    total: order.total,
    currency: order.currency,
    description: order.description,
    applied_coupon: order.applied_coupon,
    payment_method: order.payment_method,
    transactions: order.transactions.concat(sale),
    shipping_address: order.shipping_address,
    metadata: order.metadata,
    failure_code: sale.failure_code,
    failure_reason: sale.failure_reason,
    subscription_id: order.subscription_id,
    subscription_cycle: (isApproved ? cycleOnApproval : undefined) ?? order.subscription_cycle,
    created_at: order.created_at,
    updated_at: sale.updated_at,
  };
}
