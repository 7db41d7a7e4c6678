import type { AddressRecord } from "../records/customer.ts";
import type { PaymentMethodRecord } from "../records/payment-method.ts";
import type { SubscriptionRecord } from "../records/subscription.ts";
import { Refusal } from "../refusal.ts";
import { nextBillingDateAfter, resolveBillingCycle } from "../rules/billing-dates.ts";
import type { Space } from "../space.ts";
import { scheduleBilling } from "./settle-cycle.ts";

export interface SubscriptionChange {
  card?: PaymentMethodRecord;
  shippingAddress?: AddressRecord;
  billingCycle?: Parameters<typeof resolveBillingCycle>[0];
}

/**
 * Changes card, address or billing cycle of an active or paused subscription. A changed cycle is announced twice: as
 * `subscription.billing.updated` and `subscription.updated` (statement 402).
 */
export function changeSubscription(
  space: Space,
  subscription: SubscriptionRecord,
  change: SubscriptionChange,
): SubscriptionRecord {
  if (subscription.status !== "active" && subscription.status !== "paused") {
    const message = `A subscription with status ${subscription.status} cannot be changed.`;
    throw new Refusal("subscription_not_modifiable", message);
  }
  const { card, shippingAddress, billingCycle } = change;
  if (card === undefined && shippingAddress === undefined && billingCycle === undefined) {
    return subscription;
  }
  const changed: SubscriptionRecord = {
    ...subscription,
    ...(card === undefined ? {} : { payment_method: card.summary }),
    ...(shippingAddress === undefined ? {} : { shipping_address: shippingAddress }),
    ...(billingCycle === undefined ? {} : rescheduled(space, subscription, billingCycle)),
    updated_at: space.touch(subscription.updated_at),
  };
  space.subscriptions.replace(changed);
  if (billingCycle !== undefined) {
    space.emit("subscription.billing.updated", { kind: "subscription", record: changed });
    scheduleBilling(space, changed);
  }
  space.emit("subscription.updated", { kind: "subscription", record: changed });
  return changed;
}

/** The current period stays paid; the next charge is the first date of the new cycle, counted from its start, still to come. */
function rescheduled(
  space: Space,
  subscription: SubscriptionRecord,
  sent: NonNullable<SubscriptionChange["billingCycle"]>,
): Partial<SubscriptionRecord> {
  const base = subscription.current_period_start ?? subscription.start_date;
  const cycle = resolveBillingCycle(sent, new Date(subscription.start_date));
  const next = nextBillingDateAfter(new Date(base), cycle, space.time.now());
  const nextDate = next.date.toISOString();
  const billsAgain = subscription.end_date === null || nextDate <= subscription.end_date;
  return {
    billing_cycle: cycle,
    schedule: { base, periods: next.n - 1 },
    current_period_end: nextDate,
    next_billing_date: billsAgain ? nextDate : null,
  };
}

/** Ends a subscription at once and for good (spec, Subscription transitions). */
export function cancelSubscription(
  space: Space,
  subscription: SubscriptionRecord,
): SubscriptionRecord {
  if (subscription.status === "canceled") {
    throw new Refusal("already_canceled", "The subscription is already canceled.");
  }
  if (subscription.status === "completed") {
    throw new Refusal("subscription_completed", "The subscription is already completed.");
  }
  const changed: SubscriptionRecord = {
    ...subscription,
    status: "canceled",
    canceled_at: space.time.iso(),
    next_billing_date: null,
    next_retry_at: null,
    dunning: null,
    updated_at: space.touch(subscription.updated_at),
  };
  space.subscriptions.replace(changed);
  space.emit("subscription.canceled", { kind: "subscription", record: changed });
  return changed;
}

/** A customer's subscriptions with one of these statuses. */
export function subscriptionsOf(
  space: Space,
  customerId: string,
  statuses: readonly SubscriptionRecord["status"][],
): SubscriptionRecord[] {
  return space.subscriptions
    .inGroup("customer_id", customerId)
    .filter(({ status }) => statuses.includes(status));
}
