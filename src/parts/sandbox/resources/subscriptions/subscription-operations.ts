import { ApiError } from "../../engine/api-error.ts";
import type { Space } from "../../engine/space.ts";
import { type CouponQuote, redeem } from "../coupons/redeem-coupon.ts";
import type { AddressRecord, CustomerRecord } from "../customers/customer.ts";
import type { PaymentMethodRecord } from "../payment-methods/payment-method.ts";
import type { PlanRecord } from "../plans/plan.ts";
import { chargeCycle, scheduleBilling, storeStatusChange, withCycle } from "./bill-subscription.ts";
import {
  type BillingCycle,
  type SubscriptionRecord,
  nextBillingDateAfter,
  periodsAfterPayment,
  planSummary,
  resolveBillingCycle,
} from "./subscription.ts";

export interface NewSubscription {
  customer: CustomerRecord;
  plan: PlanRecord;
  card: PaymentMethodRecord;
  billingCycle: BillingCycle;
  /** 0 is without end. */
  totalCycles: number;
  endDate: Date | null;
  shippingAddress: AddressRecord | null;
  coupon: CouponQuote | null;
}

/**
 * Creates a subscription and charges its first cycle immediately: it is `active`, or `failed` and never retried
 * automatically. Returns the subscription as created: one with a single cycle is completed right after.
 */
export function createSubscription(space: Space, input: NewSubscription): SubscriptionRecord {
  const { customer, plan, card, billingCycle, totalCycles, endDate, shippingAddress } = input;
  const applied_coupon = input.coupon?.applied ?? null;
  const at = space.time.iso();
  const id = space.ids.uuid();
  const order = chargeCycle(space, {
    subscription: {
      id,
      customer_id: customer.id,
      shipping_address: shippingAddress,
      applied_coupon,
    },
    plan,
    card,
    cycle: 1,
    failureDetails: () => ({ attempt_count: 1, next_retry_at: null }),
  });
  if (input.coupon !== null) redeem(space, input.coupon, order);
  const draft: SubscriptionRecord = {
    id,
    customer_id: customer.id,
    plan_id: plan.id,
    plan: planSummary(plan),
    status: "failed",
    billing_cycle: billingCycle,
    payment_method: card.summary,
    shipping_address: shippingAddress,
    current_period_start: null,
    current_period_end: null,
    current_billing_cycle: 0,
    total_billing_cycles: totalCycles,
    next_billing_date: null,
    start_date: at,
    end_date: endDate === null ? null : endDate.toISOString(),
    canceled_at: null,
    applied_coupon,
    failure_reason: order.failure_reason,
    attempt_count: order.status === "succeeded" ? 0 : 1,
    next_retry_at: null,
    cycles: [],
    schedule: { base: at, periods: 0 },
    dunning: null,
    created_at: at,
    updated_at: at,
  };
  const periods = order.status === "succeeded" ? periodsAfterPayment(draft, 1, 0) : {};
  const settled: SubscriptionRecord = {
    ...draft,
    ...periods,
    cycles: withCycle(space, draft, order, 1),
  };
  const isOver = settled.status === "completed";
  const created: SubscriptionRecord = isOver ? { ...settled, status: "active" } : settled;
  space.subscriptions.insert(created);
  space.emit("subscription.created", { kind: "subscription", record: created });
  if (isOver) {
    const completed = { ...settled, updated_at: space.touch(created.updated_at) };
    storeStatusChange(space, completed, "subscription.completed");
  }
  scheduleBilling(space, created);
  if (created.status === "active" && endDate !== null) {
    space.schedule("completion", id, endDate.getTime());
  }
  return created;
}

export interface SubscriptionChange {
  card?: PaymentMethodRecord;
  shippingAddress?: AddressRecord;
  billingCycle?: Parameters<typeof resolveBillingCycle>[0];
}

/**
 * Changes card, address or billing cycle of an active or paused subscription. A changed billing cycle sends two events,
 * `subscription.billing.updated` and `subscription.updated`.
 */
export function changeSubscription(
  space: Space,
  subscription: SubscriptionRecord,
  change: SubscriptionChange,
): SubscriptionRecord {
  if (subscription.status !== "active" && subscription.status !== "paused") {
    const message = `A subscription with status ${subscription.status} cannot be changed.`;
    throw new ApiError("subscription_not_modifiable", message);
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

/**
 * The schedule under a new billing cycle. The current period stays paid. The next charge is the first future date of
 * the new cycle, counted from the start of that period.
 */
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

/** Cancels a subscription immediately. It cannot be reactivated. */
export function cancelSubscription(space: Space, subscription: SubscriptionRecord): SubscriptionRecord {
  if (subscription.status === "canceled") {
    throw new ApiError("already_canceled", "The subscription is already canceled.");
  }
  if (subscription.status === "completed") {
    throw new ApiError("subscription_completed", "The subscription is already completed.");
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
  return space.subscriptions.inGroup("customer_id", customerId).filter(({ status }) => statuses.includes(status));
}
