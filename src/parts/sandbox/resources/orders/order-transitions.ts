import { ApiError } from "../../engine/api-error.ts";
import type { Space } from "../../engine/space.ts";
import { type Outcome, outcomeOf, testCards } from "../payment-methods/test-cards.ts";
import { applyRetriedCycle, applyRetriedFirstCharge } from "../subscriptions/bill-subscription.ts";
import type { TransactionRecord, TransactionStatus } from "../transactions/transaction.ts";
import { announceOutcome, attemptsOf, chargeOrder, chargedCard, withTransaction } from "./charge-order.ts";
import { type OrderRecord, type OrderStatus, decideRefund, refundedAmount, statusAfterRefund } from "./order.ts";

/**
 * Charges a failed order again with its own card, or repeats a failed refund. For a subscription's order the cycle is
 * updated too, so that the billing job does not charge it again. Refused once the subscription has ended: it sells no
 * more after that.
 */
export function retryOrder(space: Space, order: OrderRecord): OrderRecord {
  if (order.status === "refund_failed") return retryRefund(space, order);
  if (order.status !== "failed") {
    const message = `An order with status ${order.status} cannot be retried.`;
    throw new ApiError("invalid_state_transition", message);
  }
  const subscription = order.subscription_id === null ? undefined : space.subscriptions.get(order.subscription_id);
  if (subscription?.status === "canceled" || subscription?.status === "completed") {
    const message = `The order's subscription is ${subscription.status}.`;
    throw new ApiError("invalid_state_transition", message);
  }
  const isFirstCharge = subscription?.status === "failed";
  const retried = chargeOrder(space, order, chargedCard(space, order), isFirstCharge ? { subscription_cycle: 1 } : {});
  const isInDunning = subscription?.dunning?.order_id === order.id;
  announceOutcome(
    space,
    retried,
    subscription === undefined
      ? undefined
      : {
          attempt_count: attemptsOf(retried),
          next_retry_at: isInDunning ? subscription.next_retry_at : null,
        },
  );
  if (isFirstCharge) applyRetriedFirstCharge(space, subscription, retried);
  else if (subscription !== undefined && isInDunning) {
    applyRetriedCycle(space, subscription, retried);
  }
  return retried;
}

/**
 * Refunds `asked` cents, or the whole remaining balance. Refused unless the order is `succeeded` or
 * `partially_refunded`.
 */
export function refundOrder(space: Space, order: OrderRecord, asked: number | undefined): OrderRecord {
  const decision = decideRefund(order, asked);
  if (!decision.ok && decision.reason === "status") {
    throw new ApiError("invalid_state_transition", `An order with status ${order.status} cannot be refunded.`);
  }
  if (!decision.ok) {
    const message = `Only ${decision.remaining} of the order's total remain to be refunded.`;
    throw new ApiError("invalid_value", message, "amount");
  }
  return submitRefund(space, order, { amount: decision.amount, attempt: 1 });
}

/** Repeats the last refund, which failed. */
function retryRefund(space: Space, order: OrderRecord): OrderRecord {
  const failed = order.transactions.findLast(
    (transaction) => transaction.type === "refund" && transaction.status === "failed",
  );
  if (failed === undefined) throw new Error(`order ${order.id} has no failed refund`);
  return submitRefund(space, order, {
    amount: failed.amount,
    attempt: failed.attempt_count + 1,
  });
}

function submitRefund(
  space: Space,
  order: OrderRecord,
  { amount, attempt }: { amount: number; attempt: number },
): OrderRecord {
  const declined = refundOutcome(space, order.payment_method.id);
  const at = space.touch(order.updated_at);
  const refund: TransactionRecord = {
    id: space.ids.uuid(),
    type: "refund",
    status: declined === null ? "succeeded" : "failed",
    amount,
    currency: order.currency,
    customer_id: order.customer_id,
    order_id: order.id,
    payment_method: order.payment_method,
    processor_transaction_id: space.ids.processorId(),
    authorization_code: null,
    attempt_count: attempt,
    failure_code: declined?.code ?? null,
    failure_reason: declined?.reason ?? null,
    description: null,
    metadata: {},
    created_at: space.time.iso(),
    updated_at: at,
  };
  const refunded = refundedAmount(order) + (declined === null ? amount : 0);
  const changed: OrderRecord = {
    ...order,
    status: declined === null ? statusAfterRefund(order.total, refunded) : "refund_failed",
    transactions: [...order.transactions, refund],
    updated_at: at,
  };
  space.transactions.insert(refund);
  space.orders.replace(changed);
  space.emit(declined === null ? "order.refunded" : "order.refund_failed", {
    kind: "order",
    record: changed,
  });
  return changed;
}

/** A card removed since does not prevent the refund: the processor knows it by the sale. */
function refundOutcome(space: Space, cardId: string): Outcome {
  const card = space.paymentMethods.get(cardId);
  const outcomes = card === undefined ? undefined : testCards[card.token]?.refunds;
  if (card === undefined || outcomes === undefined) return null;
  const outcome = outcomeOf(outcomes, card.used.refunds);
  card.used.refunds += 1;
  return outcome;
}

/*
 * Transitions that the interface names without showing their cause. An order and its captured sale change together;
 * refunds stay as they are.
 */

/** The cardholder's bank takes the money back. Only for an order that was captured and is not fully refunded. */
export function openChargeback(space: Space, order: OrderRecord): OrderRecord {
  assertStatus(order, ["succeeded", "partially_refunded"], "charged back");
  assertPaid(order);
  return move(space, order, {
    to: "chargeback",
    sale: "chargeback",
    event: space.settings().chargeback_events.opened,
  });
}

/** The merchant accepts it: the money is lost. */
export function acceptChargeback(space: Space, order: OrderRecord): OrderRecord {
  assertStatus(order, ["chargeback"], "accepted as a chargeback");
  return move(space, order, {
    to: "chargeback_accepted",
    sale: "chargeback",
    event: space.settings().chargeback_events.accepted,
  });
}

/** The bank decides for the merchant: the sale is restored. */
export function dismissChargeback(space: Space, order: OrderRecord): OrderRecord {
  assertStatus(order, ["chargeback"], "dismissed as a chargeback");
  return move(space, order, {
    to: "chargeback_dismissed",
    sale: "succeeded",
    event: space.settings().chargeback_events.dismissed,
  });
}

/** Voids a sale before settlement. */
export function voidOrder(space: Space, order: OrderRecord): OrderRecord {
  assertStatus(order, ["succeeded"], "voided");
  if (refundedAmount(order) > 0) throw refusedMove(order, "voided");
  assertPaid(order);
  return move(space, order, { to: "voided", sale: "voided", event: "order.voided" });
}

function move(
  space: Space,
  order: OrderRecord,
  step: { to: OrderStatus; sale: TransactionStatus; event: string },
): OrderRecord {
  const at = space.touch(order.updated_at);
  const sale = order.transactions.findLast(
    ({ type, status }) => type === "sale" && status !== "failed" && status !== "voided",
  );
  if (sale === undefined) throw new Error(`order ${order.id} has no captured sale`);
  const movedSale =
    sale.status === step.sale ? sale : { ...sale, status: step.sale, updated_at: space.touch(sale.updated_at) };
  const moved: OrderRecord = {
    ...order,
    status: step.to,
    transactions: withTransaction(order, movedSale),
    updated_at: at,
  };
  if (movedSale !== sale) space.transactions.replace(movedSale);
  space.orders.replace(moved);
  space.emit(step.event, { kind: "order", record: moved });
  return moved;
}

function assertStatus(order: OrderRecord, allowed: readonly OrderStatus[], action: string): void {
  if (!allowed.includes(order.status)) throw refusedMove(order, action);
}

/** An order that a coupon made free has no sale at a processor. */
function assertPaid({ total }: OrderRecord): void {
  if (total > 0) return;
  throw new ApiError("invalid_state_transition", "The order was free: there is no sale to move.");
}

function refusedMove(order: OrderRecord, action: string): ApiError {
  const message = `An order with status ${order.status} cannot be ${action}.`;
  return new ApiError("invalid_state_transition", message);
}
