import { customerSchema } from "../service/resources/customer.ts";
import { orderTransactionSchema } from "../service/resources/order-transaction.ts";
import { orderSchema } from "../service/resources/order.ts";
import { subscriptionSchema } from "../service/resources/subscription.ts";
import { transactionSchema, transactionStatuses } from "../service/resources/transaction.ts";

const transactionFields = [
  ...Object.keys(transactionSchema.shape),
  ...Object.keys(orderTransactionSchema.shape),
];

/** The fields of each resource that the interface names; their expansions among them. */
export const knownFields: Readonly<Record<string, ReadonlySet<string>>> = {
  order: new Set([...Object.keys(orderSchema.shape), "customer"]),
  transaction: new Set([...transactionFields, "customer", "order"]),
  subscription: new Set([...Object.keys(subscriptionSchema.shape), "customer"]),
  customer: new Set(Object.keys(customerSchema.shape)),
};

export const knownTransactionStatuses: ReadonlySet<string> = new Set(transactionStatuses);
