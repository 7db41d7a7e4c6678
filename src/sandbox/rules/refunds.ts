import type { OrderRecord, OrderStatus } from "../records/order.ts";

/** The statuses that `POST /orders/{id}/refund` accepts (spec, Order transitions). */
function isRefundable(status: OrderStatus): boolean {
  return status === "succeeded" || status === "partially_refunded";
}

/** Cents that succeeded refunds gave back. */
export function refundedAmount(order: Pick<OrderRecord, "transactions">): number {
  return order.transactions
    .filter((transaction) => transaction.type === "refund" && transaction.status === "succeeded")
    .reduce((sum, transaction) => sum + transaction.amount, 0);
}

export type RefundDecision =
  | { ok: true; amount: number }
  | { ok: false; reason: "status" | "exceeds_remaining"; remaining: number };

/** How much a refund gives back: the amount asked for, else the whole remaining balance (spec, refund). */
export function decideRefund(order: OrderRecord, asked: number | undefined): RefundDecision {
  const remaining = order.total - refundedAmount(order);
  if (!isRefundable(order.status)) return { ok: false, reason: "status", remaining };
  const amount = asked ?? remaining;
  // Of an order that cost nothing there is nothing to give back.
  if (amount > remaining || remaining === 0)
    return { ok: false, reason: "exceeds_remaining", remaining };
  return { ok: true, amount };
}

/** The status of an order of which `refunded` cents of `total` are given back. */
export function statusAfterRefund(total: number, refunded: number): OrderStatus {
  return refunded >= total ? "refunded" : "partially_refunded";
}
