import type { OrderRecord } from "../records/order.ts";
import { Refusal } from "../refusal.ts";
import type { Space } from "../space.ts";
import { announceOutcome } from "./announce-order.ts";
import { attemptsOf, chargedCard, chargeOrder } from "./charge-order.ts";
import { retryRefund } from "./refund-order.ts";
import { settleRetriedCycle, settleRetriedFirstCharge } from "./settle-cycle.ts";

/**
 * Charges a failed order again with its own card, or repeats a failed refund (spec, retry). Of a subscription's order the
 * cycle is reconciled, so that the billing job does not charge it again. Refused once its subscription has ended: nothing
 * is sold after that (statement 528).
 */
export function retryOrder(space: Space, order: OrderRecord): OrderRecord {
  if (order.status === "refund_failed") return retryRefund(space, order);
  if (order.status !== "failed") {
    const message = `An order with status ${order.status} cannot be retried.`;
    throw new Refusal("invalid_state_transition", message);
  }
  const subscription =
    order.subscription_id === null ? undefined : space.subscriptions.get(order.subscription_id);
  if (subscription?.status === "canceled" || subscription?.status === "completed") {
    const message = `The order's subscription is ${subscription.status}.`;
    throw new Refusal("invalid_state_transition", message);
  }
  const isFirstCharge = subscription?.status === "failed";
  const retried = chargeOrder(
    space,
    order,
    chargedCard(space, order),
    isFirstCharge ? { subscription_cycle: 1 } : {},
  );
  const isInDunning = subscription?.dunning?.order_id === order.id;
  announceOutcome(
    space,
    retried,
    subscription === undefined
      ? undefined
      : {
          attempt_count: attemptsOf(retried),
          next_retry_at: isInDunning ? subscription.next_retry_at : null,
        },
  );
  if (isFirstCharge) settleRetriedFirstCharge(space, subscription, retried);
  else if (subscription !== undefined && isInDunning) {
    settleRetriedCycle(space, subscription, retried);
  }
  return retried;
}
