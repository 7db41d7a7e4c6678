import type { OrderRecord } from "../records/order.ts";
import type { SubscriptionRecord } from "../records/subscription.ts";
import { nextRetryAt } from "../rules/dunning.ts";
import type { Space } from "../space.ts";
import { announceOutcome } from "./announce-order.ts";
import { attemptsOf, chargeOrder } from "./charge-order.ts";
import {
  settlePaidCycle,
  settleRetriedCycle,
  storeStatusChange,
  withCycle,
} from "./settle-cycle.ts";
import { chargeCycle, planOf } from "./subscription-order.ts";

/** Charges the next cycle of a subscription if that is due; else does nothing, so that running it twice charges once. */
export function billIfDue(space: Space, id: string): void {
  const subscription = space.subscriptions.get(id);
  if (subscription?.status !== "active" || subscription.next_billing_date === null) return;
  if (Date.parse(subscription.next_billing_date) > space.time.nowMs()) return;
  const card = space.paymentMethods.get(subscription.payment_method.id);
  if (card === undefined) throw new Error(`subscription ${id} has no card`);

  const firstRetryAt = nextRetryAt(space.time.now(), 1, space.settings().dunning_retry_days);
  const next_retry_at = firstRetryAt?.toISOString() ?? null;
  const order = chargeCycle(space, {
    subscription,
    plan: planOf(space, subscription),
    card,
    cycle: subscription.current_billing_cycle + 1,
    failureDetails: () => ({ attempt_count: 1, next_retry_at }),
  });
  if (order.status === "succeeded") settlePaidCycle(space, subscription, order);
  else startDunning(space, subscription, order, next_retry_at);
}

function startDunning(
  space: Space,
  subscription: SubscriptionRecord,
  order: OrderRecord,
  next_retry_at: string | null,
): void {
  const changed: SubscriptionRecord = {
    ...subscription,
    status: "past_due",
    failure_reason: order.failure_reason,
    attempt_count: 1,
    next_retry_at,
    dunning: { order_id: order.id, first_declined_at: space.time.iso(), retries: 0 },
    cycles: withCycle(space, subscription, order, subscription.current_billing_cycle + 1),
    updated_at: space.touch(subscription.updated_at),
  };
  storeStatusChange(space, changed, "subscription.updated");
  if (next_retry_at !== null) space.schedule("dunning", changed.id, Date.parse(next_retry_at));
}

/**
 * Tries a declined renewal again if that is due. After the last attempt there is no next one and the subscription stays
 * past_due (statement 418).
 */
export function retryIfDue(space: Space, id: string): void {
  const subscription = space.subscriptions.get(id);
  const dunning = subscription?.dunning;
  if (subscription?.status !== "past_due" || dunning === null || dunning === undefined) return;
  if (subscription.next_retry_at === null) return;
  if (Date.parse(subscription.next_retry_at) > space.time.nowMs()) return;
  const order = space.orders.get(dunning.order_id);
  if (order?.status !== "failed") return;

  const retries = dunning.retries + 1;
  const next = nextRetryAt(
    new Date(dunning.first_declined_at),
    retries + 1,
    space.settings().dunning_retry_days,
  );
  const next_retry_at = next?.toISOString() ?? null;
  const retried = chargeOrder(space, order, cardFor(space, subscription, order));
  announceOutcome(space, retried, { attempt_count: attemptsOf(retried), next_retry_at });
  const counted = { ...subscription, next_retry_at, dunning: { ...dunning, retries } };
  settleRetriedCycle(space, counted, retried);
  if (retried.status === "failed" && next !== null) {
    space.schedule("dunning", id, next.getTime());
  }
}

/** The order's own card (spec, retry); where that was removed, the one that replaced it. */
function cardFor(space: Space, subscription: SubscriptionRecord, order: OrderRecord) {
  const card =
    space.paymentMethods.get(order.payment_method.id) ??
    space.paymentMethods.get(subscription.payment_method.id);
  if (card === undefined) throw new Error(`subscription ${subscription.id} has no card`);
  return card;
}

/** Ends a subscription whose end date has come. A past-due one stays so: its last cycle is not paid. */
export function completeIfOver(space: Space, id: string): void {
  const subscription = space.subscriptions.get(id);
  if (subscription?.status !== "active" || subscription.end_date === null) return;
  if (Date.parse(subscription.end_date) > space.time.nowMs()) return;
  const changed: SubscriptionRecord = {
    ...subscription,
    status: "completed",
    next_billing_date: null,
    updated_at: space.touch(subscription.updated_at),
  };
  storeStatusChange(space, changed, "subscription.completed");
}
