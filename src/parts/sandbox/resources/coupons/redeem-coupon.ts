import type { z } from "zod";
import type { couponErrors, couponPreviewInput } from "../../../../core/contract/resources/coupons.ts";
import { ApiError, invalidValue } from "../../engine/api-error.ts";
import type { Space } from "../../engine/space.ts";
import { type OrderRecord, type PricedItem, subtotalOf } from "../orders/order.ts";
import type { PlanRecord } from "../plans/plan.ts";
import {
  type AppliedCoupon,
  type CouponCodeRecord,
  type CouponRecord,
  type CouponScope,
  codeValue,
  discountOf,
} from "./coupon.ts";

/** A redeemable code, with the snapshot that the order or subscription will carry. */
export interface CouponQuote {
  readonly coupon: CouponRecord;
  readonly code: CouponCodeRecord;
  readonly applied: AppliedCoupon;
}

export type Classified =
  | { ok: true; coupon: CouponRecord; code: CouponCodeRecord }
  | { ok: false; problem: CouponProblem };

/** Whether a code may be redeemed for a use. Changes nothing. */
function classifyCode(space: Space, sentCode: string, use: Omit<CouponUse, "now">): Classified {
  const code = space.couponCodes.get(space.codes.get(codeValue(sentCode)) ?? "");
  const coupon = code === undefined ? undefined : space.coupons.get(code.coupon_id);
  if (code === undefined || coupon === undefined) return { ok: false, problem: "code_not_found" };
  const problem = couponProblem(coupon, code, { ...use, now: space.time.iso() });
  return problem === null ? { ok: true, coupon, code } : { ok: false, problem };
}

/** The discount of a code on an order; only eligible items count. Refuses a code that cannot be redeemed. */
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

/** The discount of a code on the first charge of a subscription, its setup fee included. */
export function quoteForPlan(space: Space, cart: { code: string; customerId: string; plan: PlanRecord }): CouponQuote {
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

/** Counts a redemption, even one whose charge was declined. */
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

/**
 * The facts that the rules about customers need. A first-time customer has paid nothing yet: declined and voided orders
 * do not count.
 */
function customerHistory(space: Space, customerId: string): NonNullable<CouponUse["customer"]> {
  return {
    isFirstTime: () =>
      space.orders
        .inGroup("customer_id", customerId)
        .every(({ status }) => status === "pending" || status === "failed" || status === "voided"),
    redemptionsOf: (couponId) => space.redemptions.inGroup("holder", `${couponId} ${customerId}`).length,
  };
}

function snapshotOf(coupon: CouponRecord, { code }: CouponCodeRecord, eligible: number): AppliedCoupon {
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
  const classified = classifyCode(space, code, use);
  if (classified.ok) return classified;
  throw new ApiError(classified.problem, couponProblems[classified.problem], "coupon_code");
}

/**
 * The discount that a code would give, or why it cannot be redeemed. Redeems nothing. An unknown id is an invalid
 * request: the interface has 404 for orders only.
 */
export function previewCoupon(space: Space, sent: z.output<typeof couponPreviewInput>): Record<string, unknown> {
  const { code, customer_id, plan_id, product_ids, cart_amount } = sent;
  const plan = plan_id === undefined ? undefined : space.plans.get(plan_id);
  if (plan_id !== undefined && plan === undefined) throw invalidValue("plan_id", "no such plan");
  if (customer_id !== undefined && space.customers.get(customer_id) === undefined) {
    throw invalidValue("customer_id", "no such customer");
  }
  if (product_ids?.some((id) => space.products.get(id) === undefined) === true) {
    throw invalidValue("product_ids", "names an unknown product");
  }
  const currency = sent.currency ?? plan?.currency;
  const classified = classifyCode(space, code, {
    ...(currency === undefined ? {} : { currency }),
    ...(cart_amount === undefined ? {} : { subtotal: cart_amount }),
    ...(product_ids === undefined ? {} : { productIds: product_ids }),
    ...(plan === undefined ? {} : { planId: plan.id }),
    ...(customer_id === undefined ? {} : { customer: customerHistory(space, customer_id) }),
  });
  if (!classified.ok) return { valid: false, reason: classified.problem, code };
  const applied = snapshotOf(classified.coupon, classified.code, cart_amount ?? 0);
  return {
    valid: true,
    ...applied,
    discount_amount: cart_amount === undefined ? null : applied.discount_amount,
  };
}

/** The use of a code. Rules about absent fields are not checked: a preview may know less than an order. */
export interface CouponUse {
  /** Now, in ISO 8601 with milliseconds. */
  now: string;
  currency?: string;
  /** Cents, before the discount. */
  subtotal?: number;
  productIds?: readonly string[];
  planId?: string;
  /** Functions, since the answers take a search of the customer's history and only some coupons need them. */
  customer?: { redemptionsOf(couponId: string): number; isFirstTime(): boolean };
}

/** The error codes of refusals and the reasons of previews. */
const couponProblems = {
  code_not_found: "No such coupon code.",
  coupon_archived: "The coupon is archived.",
  coupon_inactive: "The coupon is not active.",
  coupon_not_started: "The coupon cannot be redeemed yet.",
  coupon_expired: "The coupon has expired.",
  coupon_exhausted: "The coupon was redeemed as often as it may be.",
  coupon_code_exhausted: "The code was redeemed as often as it may be.",
  coupon_currency_mismatch: "The coupon is for another currency.",
  product_not_eligible: "The coupon is for other products.",
  plan_not_eligible: "The coupon is for other plans.",
  coupon_minimum_not_met: "The order is below the coupon's minimum amount.",
  coupon_first_time_only: "The coupon is for first-time customers.",
  coupon_customer_limit_reached: "The customer redeemed the coupon as often as they may.",
} as const satisfies Record<CouponProblem, string>;

export type CouponProblem = (typeof couponErrors)[number];

/** The first reason why a code cannot be redeemed, or null. */
function couponProblem(coupon: CouponRecord, code: CouponCodeRecord, use: CouponUse): CouponProblem | null {
  return stateProblem(coupon, code, use.now) ?? cartProblem(coupon, use) ?? customerProblem(coupon, use);
}

function stateProblem(coupon: CouponRecord, code: CouponCodeRecord, now: string): CouponProblem | null {
  if (coupon.archived_at !== null) return "coupon_archived";
  if (!coupon.active) return "coupon_inactive";
  if (coupon.starts_at !== null && now < coupon.starts_at) return "coupon_not_started";
  if (coupon.expires_at !== null && now >= coupon.expires_at) return "coupon_expired";
  if (isReached(coupon.max_redemptions, coupon.redemption_count)) return "coupon_exhausted";
  if (isReached(coupon.max_redemptions_per_code, code.redemption_count)) {
    return "coupon_code_exhausted";
  }
  return null;
}

function cartProblem(coupon: CouponRecord, use: CouponUse): CouponProblem | null {
  const { currency, subtotal, productIds, planId } = use;
  if (currency !== undefined && currency !== coupon.currency) return "coupon_currency_mismatch";
  if (productIds !== undefined && !productIds.some((id) => coversProduct(coupon, id))) {
    return "product_not_eligible";
  }
  if (planId !== undefined && !covers(coupon.plan_scope, coupon.plan_ids, planId)) {
    return "plan_not_eligible";
  }
  if (subtotal !== undefined && subtotal < (coupon.minimum_amount ?? 0)) {
    return "coupon_minimum_not_met";
  }
  return null;
}

function customerProblem(coupon: CouponRecord, { customer }: CouponUse): CouponProblem | null {
  if (customer === undefined) return null;
  if (coupon.first_time_customer_only && !customer.isFirstTime()) return "coupon_first_time_only";
  const limit = coupon.max_redemptions_per_customer;
  if (limit !== null && customer.redemptionsOf(coupon.id) >= limit) return "coupon_customer_limit_reached";
  return null;
}

/** Whether a coupon discounts a product. */
function coversProduct(coupon: Pick<CouponRecord, "product_scope" | "product_ids">, productId: string): boolean {
  return covers(coupon.product_scope, coupon.product_ids, productId);
}

function covers(scope: CouponScope, ids: readonly string[], id: string): boolean {
  return scope === "all" || (scope === "specific" && ids.includes(id));
}

function isReached(limit: number | null, count: number): boolean {
  return limit !== null && count >= limit;
}
