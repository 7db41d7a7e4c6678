import type { OrderRecord, OrderStatus } from "../records/order.ts";
import type { TransactionStatus } from "../records/transaction.ts";
import { Refusal } from "../refusal.ts";
import { refundedAmount } from "../rules/refunds.ts";
import type { Space } from "../space.ts";
import { withTransaction } from "./settle-sale.ts";

/*
 * Transitions that the interface names without showing how they come about. An order and its captured sale move
 * together (statement 357); refunds stay (statement 362).
 */

/** The cardholder's bank takes the money back. Only from what was captured and is not refunded whole. */
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

/** The bank finds for the merchant: the sale stands again. */
export function dismissChargeback(space: Space, order: OrderRecord): OrderRecord {
  assertStatus(order, ["chargeback"], "dismissed as a chargeback");
  return move(space, order, {
    to: "chargeback_dismissed",
    sale: "succeeded",
    event: space.settings().chargeback_events.dismissed,
  });
}

/** Voids a sale before settlement (statement 361). */
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
    sale.status === step.sale
      ? sale
      : { ...sale, status: step.sale, updated_at: space.touch(sale.updated_at) };
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

/** Of an order that a coupon made free no processor has a sale. */
function assertPaid({ total }: OrderRecord): void {
  if (total > 0) return;
  throw new Refusal("invalid_state_transition", "The order was free: there is no sale to move.");
}

function refusedMove(order: OrderRecord, action: string): Refusal {
  const message = `An order with status ${order.status} cannot be ${action}.`;
  return new Refusal("invalid_state_transition", message);
}
