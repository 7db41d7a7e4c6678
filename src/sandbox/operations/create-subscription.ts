import type { AddressRecord, CustomerRecord } from "../records/customer.ts";
import type { PaymentMethodRecord } from "../records/payment-method.ts";
import type { PlanRecord } from "../records/plan.ts";
import type { SubscriptionRecord } from "../records/subscription.ts";
import type { BillingCycle } from "../rules/billing-dates.ts";
import { periodsAfterPayment } from "../rules/subscription-periods.ts";
import type { Space } from "../space.ts";
import type { CouponQuote } from "./redeem-coupon.ts";
import { redeem } from "./redeem-coupon.ts";
import { scheduleBilling, storeStatusChange, withCycle } from "./settle-cycle.ts";
import { chargeCycle } from "./subscription-order.ts";

export interface NewSubscription {
  customer: CustomerRecord;
  plan: PlanRecord;
  card: PaymentMethodRecord;
  billingCycle: BillingCycle;
  /** 0: without end. */
  totalCycles: number;
  endDate: Date | null;
  shippingAddress: AddressRecord | null;
  coupon: CouponQuote | null;
}

/**
 * Creates a subscription and charges its first cycle at once: `active`, or `failed` and never retried automatically (spec,
 * Subscription transitions). The answer is the subscription as created: one that has a single cycle is completed right after.
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
    plan: { id: plan.id, name: plan.name, amount: plan.amount, currency: plan.currency },
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
