import type { Space } from "../../engine/space.ts";
import { type AppliedCoupon, coversCycle, discountOf } from "../coupons/coupon.ts";
import { type NewOrder, announceOutcome, attemptsOf, chargeOrder, createOrder } from "../orders/charge-order.ts";
import { type OrderRecord, type PricedItem, priceOf, subtotalOf } from "../orders/order.ts";
import type { PaymentMethodRecord } from "../payment-methods/payment-method.ts";
import type { PlanRecord } from "../plans/plan.ts";
import {
  type CycleRecord,
  type SubscriptionRecord,
  billingDate,
  nextRetryAt,
  periodsAfterPayment,
} from "./subscription.ts";

/**
 * Charges the next cycle of a subscription if it is due. Otherwise does nothing, so that running it twice charges once.
 */
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
 * Retries a declined renewal if that is due. After the last attempt there is no next one, and the subscription stays
 * past_due.
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
  const next = nextRetryAt(new Date(dunning.first_declined_at), retries + 1, space.settings().dunning_retry_days);
  const next_retry_at = next?.toISOString() ?? null;
  const retried = chargeOrder(space, order, cardFor(space, subscription, order));
  announceOutcome(space, retried, { attempt_count: attemptsOf(retried), next_retry_at });
  const counted = { ...subscription, next_retry_at, dunning: { ...dunning, retries } };
  applyRetriedCycle(space, counted, retried);
  if (retried.status === "failed" && next !== null) {
    space.schedule("dunning", id, next.getTime());
  }
}

/** The order's own card, or its replacement if that was removed. */
function cardFor(space: Space, subscription: SubscriptionRecord, order: OrderRecord) {
  const card =
    space.paymentMethods.get(order.payment_method.id) ?? space.paymentMethods.get(subscription.payment_method.id);
  if (card === undefined) throw new Error(`subscription ${subscription.id} has no card`);
  return card;
}

/** Ends a subscription whose end date has come. A past-due one stays so: its last cycle is unpaid. */
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

/**
 * Charges one cycle of a subscription by an ordinary order: the plan's amount, plus the setup fee (`one_time_amount`)
 * in the first cycle, less the coupon's discount for the cycle.
 */
export function chargeCycle(
  space: Space,
  input: {
    subscription: Pick<SubscriptionRecord, "id" | "customer_id" | "shipping_address" | "applied_coupon">;
    plan: PlanRecord;
    card: PaymentMethodRecord;
    cycle: number;
    failureDetails: NonNullable<NewOrder["failureDetails"]>;
  },
): OrderRecord {
  const { subscription, plan, card, cycle, failureDetails } = input;
  const items = itemsOf(plan, cycle);
  const appliedCoupon = discountOfCycle(subscription.applied_coupon, cycle, items);
  const price = priceOf(items, appliedCoupon?.discount_amount);
  if (price === null) throw new Error(`the price of plan ${plan.id} is no safe integer`);
  return createOrder(space, {
    customerId: subscription.customer_id,
    card,
    items,
    price,
    appliedCoupon,
    currency: plan.currency,
    description: `${plan.name}, cycle ${cycle}`,
    shippingAddress: subscription.shipping_address,
    metadata: {},
    subscription: { id: subscription.id, cycle },
    failureDetails,
  });
}

/** The coupon's snapshot on the order of a cycle; null once the coupon's duration is over. */
function discountOfCycle(
  redeemed: AppliedCoupon | null,
  cycle: number,
  items: readonly PricedItem[],
): AppliedCoupon | null {
  if (redeemed === null || !coversCycle(redeemed, cycle)) return null;
  return { ...redeemed, discount_amount: discountOf(redeemed, subtotalOf(items)) };
}

function itemsOf(plan: PlanRecord, cycle: number): PricedItem[] {
  const product_id = plan.products[0]?.id ?? plan.id;
  const items = [{ product_id, name: plan.name, quantity: 1, price: plan.amount }];
  if (cycle === 1 && plan.one_time_amount > 0) {
    items.push({
      product_id,
      name: `${plan.name}: setup fee`,
      quantity: 1,
      price: plan.one_time_amount,
    });
  }
  return items;
}

/** The plan of a subscription. Plans are never removed. */
function planOf(space: Space, subscription: SubscriptionRecord): PlanRecord {
  const plan = space.plans.get(subscription.plan_id);
  if (plan === undefined) throw new Error(`no plan ${subscription.plan_id}`);
  return plan;
}

/**
 * Stores a changed subscription. If `subscription_status_events` is set, sends an event that the interface does not
 * name.
 */
export function storeStatusChange(space: Space, changed: SubscriptionRecord, type: string): void {
  space.subscriptions.replace(changed);
  if (space.settings().subscription_status_events) {
    space.emit(type, { kind: "subscription", record: changed });
  }
}

/** Handles an approved renewal: advances the periods, sends the event, plans the next charge. */
function settlePaidCycle(space: Space, subscription: SubscriptionRecord, order: OrderRecord): SubscriptionRecord {
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
  // The end date may have passed during dunning.
  if (changed.end_date !== null) {
    space.schedule("completion", changed.id, Date.parse(changed.end_date));
  }
  return changed;
}

/** Handles a retry of the renewal in dunning, whether by the dunning job or by hand. */
export function applyRetriedCycle(space: Space, subscription: SubscriptionRecord, order: OrderRecord): void {
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
 * Handles a retry of the first charge. Once it is approved, the first cycle is paid and current. The subscription stays
 * `failed` and bills nothing more.
 */
export function applyRetriedFirstCharge(space: Space, subscription: SubscriptionRecord, order: OrderRecord): void {
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

/** The cycles of a subscription with a newer outcome of one of them. */
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
  // Only the newest cycle can have been tried before.
  const { cycles } = subscription;
  const earlier = cycles.at(-1)?.cycle === cycle ? cycles.slice(0, -1) : cycles;
  return earlier.concat(entry);
}
