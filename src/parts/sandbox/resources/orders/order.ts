import type { orderStatuses } from "../../../../core/contract/resources/orders.ts";
import type { Metadata } from "../../engine/store/table.ts";
import type { AppliedCoupon } from "../coupons/coupon.ts";
import { type AddressRecord, type WithCustomers, embedCustomer } from "../customers/customer.ts";
import type { CardSummary } from "../payment-methods/payment-method.ts";
import type { FailureCode } from "../payment-methods/test-cards.ts";
import type { TransactionRecord } from "../transactions/transaction.ts";

export type OrderStatus = (typeof orderStatuses)[number];

export interface OrderItemRecord {
  readonly id: string;
  readonly product_id: string;
  readonly name: string;
  readonly quantity: number;
  readonly price: number;
  readonly total: number;
}

export interface OrderRecord {
  readonly id: string;
  readonly order_number: string;
  readonly customer_id: string;
  readonly status: OrderStatus;
  readonly items: readonly OrderItemRecord[];
  readonly subtotal: number;
  readonly discount_amount: number;
  readonly total: number;
  readonly currency: string;
  readonly description: string | null;
  readonly applied_coupon: AppliedCoupon | null;
  readonly payment_method: CardSummary;
  readonly transactions: readonly TransactionRecord[];
  readonly shipping_address: AddressRecord | null;
  readonly metadata: Metadata;
  readonly failure_code: FailureCode | null;
  readonly failure_reason: string | null;
  readonly subscription_id: string | null;
  readonly subscription_cycle: number | null;
  readonly created_at: string;
  readonly updated_at: string;
}

/** An order with its items and its transactions inline. */
export function orderBody(order: OrderRecord): Record<string, unknown> {
  return { ...order, transactions: order.transactions.map(inlineTransaction) };
}

/** A transaction as an order carries it. The interface shows two of the names; the others are assumed. */
function inlineTransaction(transaction: TransactionRecord): unknown {
  return {
    id: transaction.id,
    type: transaction.type,
    status: transaction.status,
    amount: transaction.amount,
    currency: transaction.currency,
    processor_transaction_id: transaction.processor_transaction_id,
    attempt_count: transaction.attempt_count,
    failure_code: transaction.failure_code,
    failure_reason: transaction.failure_reason,
    created_at: transaction.created_at,
    updated_at: transaction.updated_at,
  };
}

/** An order retrieved by id: items and transactions are inline, the customer only if requested. */
export function expandedOrder(
  space: WithCustomers,
  order: OrderRecord,
  expand: readonly ("customer" | "transactions")[] = [],
): Record<string, unknown> {
  const body = orderBody(order);
  if (expand.includes("customer")) embedCustomer(space, body, order.customer_id);
  return body;
}

/** An order in a list: items, transactions and the customer only if requested. */
export function listedOrder(
  space: WithCustomers,
  order: OrderRecord,
  expand: readonly ("customer" | "items" | "transactions")[] = [],
): Record<string, unknown> {
  const { items, transactions, ...body } = order;
  const listed: Record<string, unknown> = body;
  if (expand.includes("items")) listed.items = items;
  if (expand.includes("transactions")) listed.transactions = transactions.map(inlineTransaction);
  if (expand.includes("customer")) embedCustomer(space, listed, order.customer_id);
  return listed;
}

export interface PricedItem {
  product_id: string;
  name: string;
  quantity: number;
  /** Unit price, in cents. */
  price: number;
}

export interface Price {
  /** Cents, before discounts. */
  subtotal: number;
  discount_amount: number;
  /** Cents, net of discount. */
  total: number;
}

/** Cents of all items, before discounts. */
export function subtotalOf(items: readonly PricedItem[]): number {
  return items.reduce((sum, item) => sum + item.price * item.quantity, 0);
}

/** The price of an order. Null when the sum exceeds the integers that JSON can carry. */
export function priceOf(items: readonly PricedItem[], discountAmount = 0): Price | null {
  const subtotal = subtotalOf(items);
  if (!Number.isSafeInteger(subtotal)) return null;
  const discount_amount = Math.min(discountAmount, subtotal);
  return { subtotal, discount_amount, total: subtotal - discount_amount };
}

/** The statuses that `POST /orders/{id}/refund` accepts. */
function isRefundable(status: OrderStatus): boolean {
  return status === "succeeded" || status === "partially_refunded";
}

/** Cents that succeeded refunds returned. */
export function refundedAmount(order: Pick<OrderRecord, "transactions">): number {
  return order.transactions
    .filter((transaction) => transaction.type === "refund" && transaction.status === "succeeded")
    .reduce((sum, transaction) => sum + transaction.amount, 0);
}

export type RefundDecision =
  | { ok: true; amount: number }
  | { ok: false; reason: "status" | "exceeds_remaining"; remaining: number };

/** The amount of a refund: the requested one, else the whole remaining balance. */
export function decideRefund(order: OrderRecord, asked: number | undefined): RefundDecision {
  const remaining = order.total - refundedAmount(order);
  if (!isRefundable(order.status)) return { ok: false, reason: "status", remaining };
  const amount = asked ?? remaining;
  // A free order has no amount to refund.
  if (amount > remaining || remaining === 0) return { ok: false, reason: "exceeds_remaining", remaining };
  return { ok: true, amount };
}

/** The status of an order after `refunded` of its `total` cents were refunded. */
export function statusAfterRefund(total: number, refunded: number): OrderStatus {
  return refunded >= total ? "refunded" : "partially_refunded";
}
