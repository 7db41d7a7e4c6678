import type { couponDurations, couponKinds } from "../service/resources/applied-coupon.ts";
import type { couponScopes } from "../service/resources/coupon.ts";

export type CouponScope = (typeof couponScopes)[number];

/** What a coupon takes off. Exactly one of `percentage` and `amount` is set. */
export interface DiscountTerms {
  /** 1 to 100, possibly fractional. */
  readonly percentage: number | null;
  /** Cents. */
  readonly amount: number | null;
  /** Cents; percentage coupons only. */
  readonly max_discount_amount: number | null;
}

/** For how many cycles of a subscription. */
export interface DurationTerms {
  readonly duration: (typeof couponDurations)[number];
  readonly duration_in_cycles: number | null;
}

/** Everything about a coupon that its merchant decides. */
export interface CouponTerms extends DiscountTerms, DurationTerms {
  readonly name: string;
  readonly description: string | null;
  readonly kind: (typeof couponKinds)[number];
  readonly currency: string;
  readonly first_time_customer_only: boolean;
  readonly max_redemptions_per_code: number | null;
  readonly max_redemptions: number | null;
  readonly max_redemptions_per_customer: number | null;
  /** Cents. */
  readonly minimum_amount: number | null;
  readonly starts_at: string | null;
  readonly expires_at: string | null;
  readonly product_scope: CouponScope;
  readonly plan_scope: CouponScope;
  readonly product_ids: readonly string[];
  readonly plan_ids: readonly string[];
}

export interface CouponRecord extends CouponTerms {
  readonly id: string;
  readonly active: boolean;
  readonly archived_at: string | null;
  readonly code_prefix: string | null;
  readonly generated_code_count: number;
  readonly redemption_count: number;
  readonly created_at: string;
  /** Of the last edit; a redemption is none. */
  readonly updated_at: string;
}

export interface CouponCodeRecord {
  readonly id: string;
  readonly coupon_id: string;
  /** Upper case; unique in its environment, also among archived coupons. */
  readonly code: string;
  readonly redemption_count: number;
  readonly created_at: string;
}

/**
 * The form in which codes are kept and compared: a sent code matches in any letter case (spec, `coupon_code`), and a
 * promo's code is its name in this form (spec, `POST /coupons`, rule 4).
 */
export function codeValue(sent: string): string {
  return sent.trim().toUpperCase();
}

/** Kept for good: who redeemed what with which order. */
export interface RedemptionRecord {
  readonly id: string;
  readonly coupon_id: string;
  readonly code_id: string;
  readonly customer_id: string;
  /** The order, or the subscription's first one. */
  readonly order_id: string;
  readonly subscription_id: string | null;
  readonly created_at: string;
}

/** A snapshot taken at redemption (spec, Order, `applied_coupon`). */
export interface AppliedCoupon extends DiscountTerms, DurationTerms {
  readonly id: string;
  readonly code: string;
  readonly name: string;
  readonly kind: CouponTerms["kind"];
  readonly currency: string;
  /** Cents; on a subscription those of the first cycle. */
  readonly discount_amount: number;
}
