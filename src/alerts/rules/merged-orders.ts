import type { DeclinedOrder } from "./declined-order.ts";
import { isFirstCharge } from "./declined-order.ts";

/** Orders of one cycle, as one. */
export interface MergedOrder extends DeclinedOrder {
  ids: readonly string[];
}

/**
 * A cycle has one order as a rule; should a service make another one for a retry, both tell one story: that of the newest
 * order, with the attempts of all. `orders` come oldest first. Pure.
 */
export function mergedOrders(orders: readonly DeclinedOrder[]): MergedOrder[] {
  const byCycle = new Map<string, MergedOrder>();
  for (const order of orders) {
    const cycle = cycleOf(order);
    const older = byCycle.get(cycle);
    byCycle.set(
      cycle,
      older === undefined
        ? { ...order, ids: [order.id] }
        : {
            ...order,
            ids: [...older.ids, order.id],
            sales: [...older.sales, ...order.sales],
            failures: [...older.failures, ...order.failures],
            dunning: [...older.dunning, ...order.dunning],
            settledAt: older.settledAt ?? order.settledAt,
          },
    );
  }
  return [...byCycle.values()];
}

function cycleOf(order: DeclinedOrder): string {
  if (order.subscriptionId === null) return `order:${order.id}`;
  return `${order.subscriptionId}:${isFirstCharge(order) ? "first" : order.cycle}`;
}
