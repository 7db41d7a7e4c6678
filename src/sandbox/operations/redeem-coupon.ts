import type { AppliedCoupon, CouponCodeRecord, CouponRecord } from "../coupon-records.ts";
import { codeValue } from "../coupon-records.ts";
import type { OrderRecord } from "../records/order.ts";
import type { PlanRecord } from "../records/plan.ts";
import { Refusal } from "../refusal.ts";
import { discountOf } from "../rules/coupon-discount.ts";
import type { CouponProblem, CouponUse } from "../rules/coupon-eligibility.ts";
import { couponProblem, couponProblems, coversProduct } from "../rules/coupon-eligibility.ts";
import type { PricedItem } from "../rules/pricing.ts";
import { subtotalOf } from "../rules/pricing.ts";
import type { Space } from "../space.ts";

/** A code that may be redeemed, with the snapshot that the order or subscription will carry. */
export interface CouponQuote {
  readonly coupon: CouponRecord;
  readonly code: CouponCodeRecord;
  readonly applied: AppliedCoupon;
}

export type Judged =
  | { ok: true; coupon: CouponRecord; code: CouponCodeRecord }
  | { ok: false; problem: CouponProblem };

/** Whether a code may be redeemed for a use; changes nothing. */
export function judgeCode(space: Space, sentCode: string, use: Omit<CouponUse, "now">): Judged {
  const code = space.couponCodes.get(space.codes.get(codeValue(sentCode)) ?? "");
  const coupon = code === undefined ? undefined : space.coupons.get(code.coupon_id);
  if (code === undefined || coupon === undefined) return { ok: false, problem: "code_not_found" };
  const problem = couponProblem(coupon, code, { ...use, now: space.time.iso() });
  return problem === null ? { ok: true, coupon, code } : { ok: false, problem };
}

/** What a code takes off an order; only eligible items count (spec, `coupon_code`). Refuses a code that cannot be redeemed. */
export function quoteForItems(
  space: Space,
  cart: { code: string; customerId: string; items: readonly PricedItem[]; currency: string },
): CouponQuote {
  const { code, customerId, items, currency } = cart;
  const productIds = items.map(({ product_id }) => product_id);
  const { coupon, code: redeemed } = admitted(space, code, {
    currency,
    subtotal: subtotalOf(items),
    productIds,
    customer: customerHistory(space, customerId),
  });
  const eligible = items.filter(({ product_id }) => coversProduct(coupon, product_id));
  return { coupon, code: redeemed, applied: snapshotOf(coupon, redeemed, subtotalOf(eligible)) };
}

/** What a code takes off the first charge of a subscription, its setup fee included. */
export function quoteForPlan(
  space: Space,
  cart: { code: string; customerId: string; plan: PlanRecord },
): CouponQuote {
  const { code, customerId, plan } = cart;
  const subtotal = plan.amount + plan.one_time_amount;
  const { coupon, code: redeemed } = admitted(space, code, {
    currency: plan.currency,
    subtotal,
    planId: plan.id,
    customer: customerHistory(space, customerId),
  });
  return { coupon, code: redeemed, applied: snapshotOf(coupon, redeemed, subtotal) };
}

/** Counts a redemption; also one whose charge was declined (statement 315). */
export function redeem(
  space: Space,
  quote: CouponQuote,
  order: Pick<OrderRecord, "id" | "customer_id" | "subscription_id">,
): void {
  const coupon = space.coupons.get(quote.coupon.id) ?? quote.coupon;
  const code = space.couponCodes.get(quote.code.id) ?? quote.code;
  space.coupons.replace({ ...coupon, redemption_count: coupon.redemption_count + 1 });
  space.couponCodes.replace({ ...code, redemption_count: code.redemption_count + 1 });
  space.redemptions.insert({
    id: space.ids.uuid(),
    coupon_id: coupon.id,
    code_id: code.id,
    customer_id: order.customer_id,
    order_id: order.id,
    subscription_id: order.subscription_id,
    created_at: space.time.iso(),
  });
}

/** What the rules about customers ask. A first-time customer has paid nothing yet: declined and voided orders do not count. */
export function customerHistory(
  space: Space,
  customerId: string,
): NonNullable<CouponUse["customer"]> {
  return {
    isFirstTime: () =>
      space.orders
        .inGroup("customer_id", customerId)
        .every(({ status }) => status === "pending" || status === "failed" || status === "voided"),
    redemptionsOf: (couponId) =>
      space.redemptions.group("holder", `${couponId} ${customerId}`)?.size ?? 0,
  };
}

export function snapshotOf(
  coupon: CouponRecord,
  { code }: CouponCodeRecord,
  eligible: number,
): AppliedCoupon {
  return {
    id: coupon.id,
    code,
    name: coupon.name,
    kind: coupon.kind,
    percentage: coupon.percentage,
    amount: coupon.amount,
    max_discount_amount: coupon.max_discount_amount,
    currency: coupon.currency,
    duration: coupon.duration,
    duration_in_cycles: coupon.duration_in_cycles,
    discount_amount: discountOf(coupon, eligible),
  };
}

function admitted(
  space: Space,
  code: string,
  use: Omit<CouponUse, "now">,
): { coupon: CouponRecord; code: CouponCodeRecord } {
  const judged = judgeCode(space, code, use);
  if (judged.ok) return judged;
  throw new Refusal(judged.problem, couponProblems[judged.problem], "coupon_code");
}
