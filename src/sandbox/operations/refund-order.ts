import type { OrderRecord } from "../records/order.ts";
import type { TransactionRecord } from "../records/transaction.ts";
import { Refusal } from "../refusal.ts";
import type { Outcome } from "../rules/cards.ts";
import { outcomeOf, testCards } from "../rules/cards.ts";
import { decideRefund, refundedAmount, statusAfterRefund } from "../rules/refunds.ts";
import type { Space } from "../space.ts";

/** Gives back `asked` cents, or all that remains. Refused outside `succeeded` and `partially_refunded` (spec, refund). */
export function refundOrder(
  space: Space,
  order: OrderRecord,
  asked: number | undefined,
): OrderRecord {
  const decision = decideRefund(order, asked);
  if (!decision.ok && decision.reason === "status") {
    throw new Refusal(
      "invalid_state_transition",
      `An order with status ${order.status} cannot be refunded.`,
    );
  }
  if (!decision.ok) {
    const message = `Only ${decision.remaining} of the order's total remain to be refunded.`;
    throw new Refusal("invalid_value", message, "amount");
  }
  return submitRefund(space, order, { amount: decision.amount, attempt: 1 });
}

/** Repeats the refund that failed last (spec, Order transitions: `refund_failed` and retry). */
export function retryRefund(space: Space, order: OrderRecord): OrderRecord {
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

/** A card that was removed since refuses no refund: the processor knows it by the sale. */
function refundOutcome(space: Space, cardId: string): Outcome {
  const card = space.paymentMethods.get(cardId);
  const outcomes = card === undefined ? undefined : testCards[card.token]?.refunds;
  if (card === undefined || outcomes === undefined) return null;
  const outcome = outcomeOf(outcomes, card.used.refunds);
  card.used.refunds += 1;
  return outcome;
}
