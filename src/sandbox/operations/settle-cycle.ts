import type { CycleRecord, SubscriptionRecord } from "../records/subscription.ts";
import type { OrderRecord } from "../records/order.ts";
import { periodsAfterPayment } from "../rules/subscription-periods.ts";
import { billingDate } from "../rules/billing-dates.ts";
import type { Space } from "../space.ts";
import { attemptsOf } from "./charge-order.ts";

/** Stores a changed subscription and, where the switch asks for it, announces what the interface has no event for. */
export function storeStatusChange(space: Space, changed: SubscriptionRecord, type: string): void {
  space.subscriptions.replace(changed);
  if (space.settings().subscription_status_events) {
    space.emit(type, { kind: "subscription", record: changed });
  }
}

/** A renewal was approved: moves the periods on, announces the charge, plans the next one. */
export function settlePaidCycle(
  space: Space,
  subscription: SubscriptionRecord,
  order: OrderRecord,
): SubscriptionRecord {
  const cycle = subscription.current_billing_cycle + 1;
  const changed: SubscriptionRecord = {
    ...subscription,
    ...periodsAfterPayment(subscription, cycle, subscription.schedule.periods + 1),
    failure_reason: null,
    attempt_count: 0,
    next_retry_at: null,
    dunning: null,
    cycles: withCycle(space, subscription, order, cycle),
    updated_at: space.touch(subscription.updated_at),
  };
  space.subscriptions.replace(changed);
  space.emit("subscription.charged", { kind: "subscription", record: changed });
  scheduleBilling(space, changed);
  // The end may have passed while dunning went on.
  if (changed.end_date !== null) {
    space.schedule("completion", changed.id, Date.parse(changed.end_date));
  }
  return changed;
}

/** After a retry, by the dunning job or by hand, of the renewal that dunning works on. */
export function settleRetriedCycle(
  space: Space,
  subscription: SubscriptionRecord,
  order: OrderRecord,
): void {
  if (order.status === "succeeded") {
    settlePaidCycle(space, subscription, order);
    return;
  }
  const changed: SubscriptionRecord = {
    ...subscription,
    failure_reason: order.failure_reason,
    attempt_count: attemptsOf(order),
    updated_at: space.touch(subscription.updated_at),
  };
  storeStatusChange(space, changed, "subscription.updated");
}

/**
 * After a retry of the first charge. Once it is approved the first cycle is paid and is what the subscription stands in; it
 * stays `failed` and bills nothing more (statement 351).
 */
export function settleRetriedFirstCharge(
  space: Space,
  subscription: SubscriptionRecord,
  order: OrderRecord,
): void {
  const isPaid = order.status === "succeeded";
  const changed: SubscriptionRecord = {
    ...subscription,
    ...(isPaid ? periodsAfterPayment(subscription, 1, 0) : {}),
    status: "failed",
    next_billing_date: null,
    failure_reason: order.failure_reason,
    attempt_count: isPaid ? 0 : attemptsOf(order),
    cycles: withCycle(space, subscription, order, 1),
    updated_at: space.touch(subscription.updated_at),
  };
  storeStatusChange(space, changed, "subscription.updated");
}

export function scheduleBilling(space: Space, subscription: SubscriptionRecord): void {
  if (subscription.status !== "active" || subscription.next_billing_date === null) return;
  space.schedule("billing", subscription.id, Date.parse(subscription.next_billing_date));
}

/** The cycles of a subscription with the newest outcome of one. */
export function withCycle(
  space: Space,
  subscription: SubscriptionRecord,
  order: OrderRecord,
  cycle: number,
): CycleRecord[] {
  const base = new Date(subscription.schedule.base);
  const periods = cycle === 1 ? 0 : subscription.schedule.periods + 1;
  const entry: CycleRecord = {
    cycle,
    order_id: order.id,
    status: order.status === "succeeded" ? "succeeded" : "failed",
    amount: order.total,
    period_start: billingDate(base, subscription.billing_cycle, periods).toISOString(),
    period_end: billingDate(base, subscription.billing_cycle, periods + 1).toISOString(),
    billed_at: space.time.iso(),
  };
  // Only the newest one can have been tried before.
  const { cycles } = subscription;
  const earlier = cycles.at(-1)?.cycle === cycle ? cycles.slice(0, -1) : cycles;
  return earlier.concat(entry);
}
