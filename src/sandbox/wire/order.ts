import type { OrderRecord } from "../records/order.ts";
import type { TransactionRecord } from "../records/transaction.ts";
import type { WithCustomers } from "./customer.ts";
import { embedCustomer } from "./customer.ts";

/** An order with its items and its transactions inline (spec, Order). */
export function orderBody(order: OrderRecord): Record<string, unknown> {
  return { ...order, transactions: order.transactions.map(inlineTransaction) };
}

/** A transaction as an order carries it; all names but two are assumed. */
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

/** An order retrieved on its own: items and transactions stand inline, a customer when asked for. */
export function expandedOrder(
  space: WithCustomers,
  order: OrderRecord,
  expand: readonly ("customer" | "transactions")[] = [],
): Record<string, unknown> {
  const body = orderBody(order);
  if (expand.includes("customer")) embedCustomer(space, body, order.customer_id);
  return body;
}

/** An order in a list: items, transactions and the customer are there when asked for (spec, `GET /orders`). */
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
