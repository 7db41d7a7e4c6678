import type { OrderRecord } from "../records/order.ts";
import type { TransactionRecord } from "../records/transaction.ts";
import { businessDaysAfter, nextMidnight } from "../rules/business-days.ts";
import type { Space } from "../space.ts";

/*
 * Live, a sale is confirmed after 1 to 3 business days; in the sandbox at once (spec, Sandbox). The switch `live_settlement_days` shows
 * the former: `pending`, `in_progress` from the next midnight, when its batch is closed, then `succeeded`. The order is paid all the
 * while. The interface names no event for it.
 */

/** Whether sales of this environment are confirmed later than they are made. */
export function confirmsLater({ mode, settings }: Pick<Space, "mode" | "settings">): boolean {
  return mode === "live" && settings().live_settlement_days > 0;
}

/** Plans the next step of a sale that is not confirmed. */
export function scheduleSettlement(space: Space, sale: TransactionRecord): void {
  const at = stepAt(space, sale);
  if (at !== null) space.schedule("settlement", sale.id, at.getTime());
}

/** Takes the next step of a sale if that is due; false when there is none, as after a chargeback. */
export function settleIfDue(space: Space, id: string): boolean {
  const sale = space.transactions.get(id);
  const at = sale === undefined ? null : stepAt(space, sale);
  if (sale === undefined || at === null || at > space.time.now()) return false;
  const moved: TransactionRecord = {
    ...sale,
    status: sale.status === "pending" ? "in_progress" : "succeeded",
    updated_at: space.touch(sale.updated_at),
  };
  space.transactions.replace(moved);
  const order = sale.order_id === null ? undefined : space.orders.get(sale.order_id);
  if (order !== undefined) {
    const transactions = withTransaction(order, moved);
    space.orders.replace({ ...order, transactions, updated_at: space.touch(order.updated_at) });
  }
  scheduleSettlement(space, moved);
  return true;
}

function stepAt(space: Space, { type, status, created_at }: TransactionRecord): Date | null {
  const made = new Date(created_at);
  if (type !== "sale") return null;
  if (status === "pending") return nextMidnight(made);
  if (status !== "in_progress") return null;
  return businessDaysAfter(made, space.settings().live_settlement_days);
}

/** The transactions of an order with a newer state of one of them. */
export function withTransaction(
  { transactions }: OrderRecord,
  newer: TransactionRecord,
): TransactionRecord[] {
  return transactions.map((known) => (known.id === newer.id ? newer : known));
}
