import type { Random } from "../../platform/random.ts";
import type { CouponTerms } from "../coupon-records.ts";
import { createCoupon } from "../operations/coupons.ts";
import type { CouponQuote } from "../operations/redeem-coupon.ts";
import { quoteForItems, quoteForPlan } from "../operations/redeem-coupon.ts";
import type { PlanRecord } from "../records/plan.ts";
import { Refusal } from "../refusal.ts";
import type { PricedItem } from "../rules/pricing.ts";
import type { Space } from "../space.ts";
import { chance, pick } from "./script.ts";

const orderRate = 0.15;
const subscriptionRate = 0.3;

type PromoTerms = Partial<CouponTerms> & Pick<CouponTerms, "name" | "duration">;

/** None of them makes an order free: an amount comes with a minimum above it. */
const promos: readonly PromoTerms[] = [
  { name: "TEATIME", percentage: 12.5, max_discount_amount: 1500, duration: "once" },
  { name: "REGULARS", percentage: 10, duration: "repeating", duration_in_cycles: 3 },
  { name: "FRIENDS", percentage: 5, duration: "forever" },
  { name: "FIVE-OFF", amount: 500, minimum_amount: 900, duration: "once" },
  { name: "FOUR-OFF-EU", amount: 400, minimum_amount: 800, currency: "eur", duration: "once" },
  { name: "FRIENDS-EU", amount: 150, minimum_amount: 800, currency: "eur", duration: "forever" },
];

/** Coupons that some of the traffic redeems. Chance of their own, so that they change prices and nothing else. */
export interface Campaigns {
  /** Null when this one comes without a code, or with one that does not apply. */
  forItems(customerId: string, items: readonly PricedItem[], currency: string): CouponQuote | null;
  forPlan(customerId: string, plan: PlanRecord): CouponQuote | null;
}

export function createCampaigns(space: Space, random: Random): Campaigns {
  for (const terms of promos) {
    if (!space.codes.has(terms.name)) createCoupon(space, { ...terms, kind: "promo" });
  }

  function sometimes(
    rate: number,
    currency: string,
    quote: (code: string) => CouponQuote,
  ): CouponQuote | null {
    if (!chance(random, rate)) return null;
    const fitting = promos.filter((terms) => (terms.currency ?? "usd") === currency);
    if (fitting.length === 0) return null;
    try {
      return quote(pick(random, fitting as [PromoTerms, ...PromoTerms[]]).name);
    } catch (error) {
      if (error instanceof Refusal) return null;
      throw error;
    }
  }

  return {
    forItems: (customerId, items, currency) =>
      sometimes(orderRate, currency, (code) =>
        quoteForItems(space, { code, customerId, items, currency }),
      ),
    forPlan: (customerId, plan) =>
      sometimes(subscriptionRate, plan.currency, (code) =>
        quoteForPlan(space, { code, customerId, plan }),
      ),
  };
}
