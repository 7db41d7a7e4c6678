import * as routes from "../../../../core/contract/resources/transactions.ts";
import { plainAnswer } from "../../engine/answer.ts";
import { isWithin, listAnswer } from "../../http/list.ts";
import { type Mounted, mounted } from "../../http/mount.ts";
import type { Space } from "../../engine/space.ts";
import { embedCustomer } from "../customers/customer.ts";
import { orderBody } from "../orders/order.ts";
import { type TransactionRecord, transactionBody } from "./transaction.ts";
import { find } from "../find.ts";

const grouped = ["customer_id", "status", "type"] as const;

const list = mounted(routes.listTransactions, (space, { query }) => {
  const anyOf = Object.fromEntries(
    grouped.flatMap((field) => {
      const value = query[field];
      return value === undefined ? [] : [[field, [value]]];
    }),
  );
  return listAnswer(space, space.transactions, query, {
    url: `/v1${routes.listTransactions.path}`,
    show: (transaction) => expandedTransaction(space, transaction, query.expand),
    anyOf,
    // An order knows its transactions. A group for every order would take as much memory as the orders.
    ...(query.order_id === undefined ? {} : { among: transactionIdsOf(space, query.order_id) }),
    test: ({ amount }) => isWithin(amount, query["amount[gte]"], query["amount[lte]"]),
    fields: query["fields[transactions]"],
  });
});

function transactionIdsOf(space: Space, orderId: string): string[] {
  return space.orders.get(orderId)?.transactions.map(({ id }) => id) ?? [];
}

const retrieve = mounted(routes.getTransaction, (space, { params, query }, state) => {
  const transaction = find(state, space, "transactions", params.id);
  return plainAnswer(200, expandedTransaction(space, transaction, query.expand));
});

function expandedTransaction(
  space: Space,
  transaction: TransactionRecord,
  expand: readonly ("customer" | "order")[] = [],
): Record<string, unknown> {
  const body = transactionBody(transaction);
  if (expand.includes("customer")) embedCustomer(space, body, transaction.customer_id);
  if (expand.includes("order")) {
    const order = transaction.order_id === null ? undefined : space.orders.get(transaction.order_id);
    body.order = order === undefined ? null : orderBody(order);
  }
  return body;
}

export const transactionEndpoints: readonly Mounted[] = [list, retrieve];
