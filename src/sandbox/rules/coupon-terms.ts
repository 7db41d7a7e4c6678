import type { CouponRecord, CouponTerms } from "../coupon-records.ts";

/** A term that contradicts another: the field to change and what is wrong with it. */
export interface TermProblem {
  field: keyof CouponTerms;
  message: string;
}

/** What is wrong with a coupon's terms taken together, or null (spec, `POST /coupons`, rules 1 to 3). */
export function termProblem(terms: CouponTerms): TermProblem | null {
  return (
    discountProblem(terms) ?? durationProblem(terms) ?? scopeProblem(terms) ?? windowProblem(terms)
  );
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

/** What the first redemption fixes (spec, `PATCH /coupons/{id}`). */
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

/** The first locked field that a change would alter, or null. A value as it is alters nothing (statement 462). */
export function lockedField(
  coupon: CouponRecord,
  change: Partial<CouponTerms>,
  now: string,
): keyof CouponTerms | null {
  const isRedeemed = coupon.redemption_count > 0;
  const hasStarted = coupon.starts_at !== null && coupon.starts_at <= now;
  const locked = new Set<keyof CouponTerms>(isRedeemed ? lockedByRedemption : []);
  if (isRedeemed && coupon.kind === "promo") locked.add("name");
  if (isRedeemed || hasStarted) locked.add("starts_at");
  const altered = [...locked].find(
    (field) =>
      change[field] !== undefined &&
      JSON.stringify(change[field]) !== JSON.stringify(coupon[field]),
  );
  return altered ?? null;
}
