import type { z } from "zod";

import type { couponPreviewInput } from "../../service/routes/coupon-fields.ts";
import { invalidValue } from "../refusal.ts";
import type { Space } from "../space.ts";
import { customerHistory, judgeCode, snapshotOf } from "./redeem-coupon.ts";

/**
 * What a code would take off, or why it cannot be redeemed; nothing is redeemed. An id that is unknown is a fault of the request: the
 * interface has 404 for orders only (spec, `POST /coupons/validate`).
 */
export function previewCoupon(
  space: Space,
  sent: z.output<typeof couponPreviewInput>,
): Record<string, unknown> {
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
  const judged = judgeCode(space, code, {
    ...(currency === undefined ? {} : { currency }),
    ...(cart_amount === undefined ? {} : { subtotal: cart_amount }),
    ...(product_ids === undefined ? {} : { productIds: product_ids }),
    ...(plan === undefined ? {} : { planId: plan.id }),
    ...(customer_id === undefined ? {} : { customer: customerHistory(space, customer_id) }),
  });
  if (!judged.ok) return { valid: false, reason: judged.problem, code };
  const applied = snapshotOf(judged.coupon, judged.code, cart_amount ?? 0);
  return {
    valid: true,
    ...applied,
    discount_amount: cart_amount === undefined ? null : applied.discount_amount,
  };
}
