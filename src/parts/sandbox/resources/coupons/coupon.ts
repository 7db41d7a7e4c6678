import type { couponDurations, couponKinds, couponScopes } from "../../../../core/contract/resources/coupons.ts";

export type CouponScope = (typeof couponScopes)[number];

/** The discount of a coupon. Exactly one of `percentage` and `amount` is set. */
export interface DiscountTerms {
  /** 1 to 100, possibly fractional. */
  readonly percentage: number | null;
  /** Cents. */
  readonly amount: number | null;
  /** Cents; percentage coupons only. */
  readonly max_discount_amount: number | null;
}

/** The number of a subscription's cycles that a coupon discounts. */
export interface DurationTerms {
  readonly duration: (typeof couponDurations)[number];
  readonly duration_in_cycles: number | null;
}

/** The terms of a coupon that its merchant decides. */
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
  /** The time of the last edit; a redemption is not an edit. */
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
 * The form in which codes are stored and compared. A sent code matches in any letter case, and a promo's code is its
 * name in this form.
 */
export function codeValue(sent: string): string {
  return sent.trim().toUpperCase();
}

/** A redemption: the customer, the code and the order. Never removed. */
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

/** The snapshot of a coupon that is taken at redemption. */
export interface AppliedCoupon extends DiscountTerms, DurationTerms {
  readonly id: string;
  readonly code: string;
  readonly name: string;
  readonly kind: CouponTerms["kind"];
  readonly currency: string;
  /** Cents; on a subscription, the discount of the first cycle. */
  readonly discount_amount: number;
}

export function couponBody(coupon: CouponRecord): Record<string, unknown> {
  return { ...coupon };
}

export function couponCodeBody(code: CouponCodeRecord): Record<string, unknown> {
  return { ...code };
}

/** A term that contradicts another: the field to change and its fault. */
export interface TermProblem {
  field: keyof CouponTerms;
  message: string;
}

/** The first contradiction among a coupon's terms, or null. */
export function termProblem(terms: CouponTerms): TermProblem | null {
  return discountProblem(terms) ?? durationProblem(terms) ?? scopeProblem(terms) ?? windowProblem(terms);
}

function discountProblem(terms: CouponTerms): TermProblem | null {
  const { percentage, amount, max_discount_amount, currency } = terms;
  if ((percentage === null) === (amount === null)) {
    return { field: "percentage", message: "send exactly one of percentage and amount" };
  }
  if (percentage === null && max_discount_amount !== null) {
    return { field: "max_discount_amount", message: "is for percentage coupons only" };
  }
  if (percentage !== null && currency !== "usd") {
    return { field: "currency", message: "must be usd for a percentage coupon" };
  }
  return null;
}

function durationProblem({ duration, duration_in_cycles }: CouponTerms): TermProblem | null {
  if (duration === "repeating" && duration_in_cycles === null) {
    return { field: "duration_in_cycles", message: "is required for a repeating coupon" };
  }
  if (duration !== "repeating" && duration_in_cycles !== null) {
    return { field: "duration_in_cycles", message: "is for repeating coupons only" };
  }
  return null;
}

function scopeProblem(terms: CouponTerms): TermProblem | null {
  for (const kind of ["product", "plan"] as const) {
    const isSpecific = terms[`${kind}_scope`] === "specific";
    const isNamed = terms[`${kind}_ids`].length > 0;
    if (isSpecific && !isNamed) {
      return { field: `${kind}_ids`, message: `is required when ${kind}_scope is specific` };
    }
    if (!isSpecific && isNamed) {
      return { field: `${kind}_ids`, message: `needs ${kind}_scope to be specific` };
    }
  }
  return null;
}

function windowProblem({ starts_at, expires_at }: CouponTerms): TermProblem | null {
  if (starts_at === null || expires_at === null || starts_at < expires_at) return null;
  return { field: "expires_at", message: "must be after starts_at" };
}

const lockedByRedemption: readonly (keyof CouponTerms)[] = [
  "percentage",
  "amount",
  "max_discount_amount",
  "currency",
  "duration",
  "duration_in_cycles",
  "first_time_customer_only",
  "max_redemptions_per_code",
  "product_scope",
  "plan_scope",
  "plan_ids",
  "product_ids",
];

/** The first locked field that a change would alter, or null. Sending the current value alters nothing. */
export function lockedField(coupon: CouponRecord, change: Partial<CouponTerms>, now: string): keyof CouponTerms | null {
  const isRedeemed = coupon.redemption_count > 0;
  const hasStarted = coupon.starts_at !== null && coupon.starts_at <= now;
  const locked = new Set<keyof CouponTerms>(isRedeemed ? lockedByRedemption : []);
  if (isRedeemed && coupon.kind === "promo") locked.add("name");
  if (isRedeemed || hasStarted) locked.add("starts_at");
  const altered = [...locked].find(
    (field) => change[field] !== undefined && JSON.stringify(change[field]) !== JSON.stringify(coupon[field]),
  );
  return altered ?? null;
}

/**
 * The discount in cents on `eligible` cents: `min(amount, eligible)`, or the percentage rounded down and then capped.
 * The calculation is exact: no float between the two integers.
 */
export function discountOf(terms: DiscountTerms, eligible: number): number {
  const { percentage, amount, max_discount_amount } = terms;
  if (percentage === null) return Math.min(amount ?? 0, eligible);
  return Math.min(floorOfPercentage(eligible, percentage), max_discount_amount ?? eligible);
}

/** A percentage is taken as the decimal number it is written as: 12.1 is 121 / 10, not the nearest double. */
function floorOfPercentage(cents: number, percentage: number): number {
  const [whole = "", fraction = ""] = String(percentage).split(".");
  const divisor = 100n * 10n ** BigInt(fraction.length);
  return Number((BigInt(cents) * BigInt(whole + fraction)) / divisor);
}

/** Whether a redeemed coupon discounts this cycle of its subscription, counted from 1. */
export function coversCycle(terms: DurationTerms, cycle: number): boolean {
  if (terms.duration === "forever") return true;
  return cycle <= (terms.duration === "once" ? 1 : (terms.duration_in_cycles ?? 0));
}
