import { customerTable } from "./customer.ts";
import { orderTable } from "./order.ts";
import { subscriptionTable } from "./subscription.ts";
import { transactionTable } from "./transaction.ts";

/** Always in this order, so that two batches cannot wait for each other. */
export const mirrorTables = [orderTable, transactionTable, subscriptionTable, customerTable];
