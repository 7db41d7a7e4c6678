import type { Identity } from "./identity.ts";
import { numberAt } from "./number-at.ts";

const couponNumber = (key: string): string => numberAt("coupon", key);

/**
 * What the coupon may give on the whole subtotal. The snapshot does not show which items were eligible, so that this is
 * an upper bound, but for a coupon whose scope is shown to be `all`. A later cycle may be beyond the duration.
 */
const judged = (formula: string, kind: string): string => `
  select id, currency, cast(least(abs(discount_amount - allowed), subtotal) as bigint) as at_risk,
         case when is_exact then '' else 'at most ' end || allowed as expected, cast(discount_amount as text) as found
  from (
    select o.*, ${formula} as allowed,
           coalesce(coupon->>case when subscription_id is null then 'product_scope' else 'plan_scope' end, '') = 'all'
             and not (subscription_id is not null and discount_amount = 0) as is_exact
    from (select order_facts.*, ${couponNumber("amount")} as amount_off, ${couponNumber("percentage")} as percentage,
                 ${couponNumber("max_discount_amount")} as cap from order_facts where coupon is not null) o
    where ${kind} is not null
  ) judged
  where discount_amount > allowed or (is_exact and discount_amount < allowed)`;

export const orderAmounts: readonly Identity[] = [
  {
    name: "total",
    severity: "critical",
    mode: "enforce",
    subject: "order",
    holds: "total = subtotal − discount_amount",
    breaches: `
      select id, currency, abs(total - subtotal + discount_amount) as at_risk,
             cast(subtotal - discount_amount as text) as expected, cast(total as text) as found
      from order_facts where total <> subtotal - discount_amount`,
  },
  {
    name: "bounds",
    severity: "critical",
    mode: "enforce",
    subject: "order",
    holds: "0 ≤ discount_amount ≤ subtotal",
    breaches: `
      select id, currency, greatest(discount_amount - subtotal, -discount_amount) as at_risk,
             '0 to ' || subtotal as expected, cast(discount_amount as text) as found
      from order_facts where discount_amount < 0 or discount_amount > subtotal`,
  },
  {
    name: "coupon_null",
    severity: "high",
    mode: "enforce",
    subject: "order",
    holds: "without a coupon the discount is 0",
    breaches: `
      select id, currency, abs(discount_amount) as at_risk, '0' as expected, cast(discount_amount as text) as found
      from order_facts where coupon is null and discount_amount <> 0`,
  },
  {
    name: "coupon_fixed",
    severity: "high",
    mode: "enforce",
    subject: "order",
    holds: "an amount off gives min(amount, eligible total)",
    breaches: judged("least(amount_off, subtotal)", "amount_off"),
  },
  {
    name: "coupon_percentage",
    severity: "high",
    mode: "enforce",
    subject: "order",
    holds: "a percentage off gives min(floor(eligible total · percentage / 100), cap)",
    breaches: judged("least(floor(subtotal * percentage / 100), cap)", "percentage"),
  },
  {
    name: "coupon_shape",
    severity: "warning",
    mode: "enforce",
    subject: "order",
    holds: "a coupon has exactly one of percentage and amount, and a cap only with a percentage",
    breaches: `
      select id, currency, discount_amount as at_risk, 'one of percentage and amount' as expected,
             concat_ws(', ', 'percentage ' || (coupon->>'percentage'), 'amount ' || (coupon->>'amount'),
                       'cap ' || (coupon->>'max_discount_amount')) as found
      from order_facts
      where coupon is not null
        and (num_nonnulls(coupon->>'percentage', coupon->>'amount') <> 1
             or (coupon->>'max_discount_amount' is not null and coupon->>'percentage' is null))`,
  },
];
