import type { OrderRecord } from "../records/order.ts";
import type { PaymentMethodRecord } from "../records/payment-method.ts";
import type { PlanRecord } from "../records/plan.ts";
import type { SubscriptionRecord } from "../records/subscription.ts";
import type { AppliedCoupon } from "../coupon-records.ts";
import { coversCycle, discountOf } from "../rules/coupon-discount.ts";
import type { PricedItem } from "../rules/pricing.ts";
import { priceOf, subtotalOf } from "../rules/pricing.ts";
import type { Space } from "../space.ts";
import type { NewOrder } from "./create-order.ts";
import { createOrder } from "./create-order.ts";

/**
 * Charges one cycle of a subscription by an ordinary order: the plan's amount, and in the first cycle its setup fee
 * (spec, Plan, `one_time_amount`), less what the coupon's snapshot says about the cycle.
 */
export function chargeCycle(
  space: Space,
  input: {
    subscription: Pick<
      SubscriptionRecord,
      "id" | "customer_id" | "shipping_address" | "applied_coupon"
    >;
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

/** The snapshot as the order of a cycle carries it; null once the coupon's duration is over (statement 385). */
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

/** The plan that a subscription bills; plans are never removed. */
export function planOf(space: Space, subscription: SubscriptionRecord): PlanRecord {
  const plan = space.plans.get(subscription.plan_id);
  if (plan === undefined) throw new Error(`no plan ${subscription.plan_id}`);
  return plan;
}
