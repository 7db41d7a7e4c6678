import type { ServiceState, WireObject } from "./sandbox-history.ts";

/** The same figures, added up in another way: straight from the service's own objects. */
export const text = (object: WireObject, key: string): string => {
  const value = object[key];
  return typeof value === "string" ? value : "";
};
const amount = (object: WireObject, key = "amount"): bigint => BigInt(object[key] as number);

export type Sums = Map<string, { n: number; sum: bigint }>;

/** Counts and sums of objects by a key. */
export function sumBy(
  objects: readonly WireObject[],
  key: (object: WireObject) => string,
  field = "amount",
): Record<string, string> {
  const sums: Sums = new Map();
  for (const object of objects) {
    const at = key(object);
    const known = sums.get(at) ?? { n: 0, sum: 0n };
    sums.set(at, { n: known.n + 1, sum: known.sum + amount(object, field) });
  }
  return Object.fromEntries(
    [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([at, { n, sum }]) => [at, `${n} ${sum}`]),
  );
}

/** The day of a zone, by the runtime's zone rules and not by the database's. */
export function dayOf(timeZone: string, iso: string): string {
  const parts = { year: "numeric", month: "2-digit", day: "2-digit" } as const;
  return new Intl.DateTimeFormat("en-CA", { timeZone, ...parts }).format(new Date(iso));
}

export const isCaptured = (t: WireObject): boolean =>
  t["type"] === "sale" && (t["status"] === "succeeded" || t["status"] === "chargeback");
const isRefunded = (t: WireObject): boolean => t["type"] === "refund" && t["status"] === "succeeded";

/** What is left in each currency: captured, less refunds, less what is charged back and not dismissed. */
export function balances({ transactions, orders }: ServiceState): Record<string, string> {
  const lost = new Set(
    orders
      .filter((o) => o["status"] === "chargeback" || o["status"] === "chargeback_accepted")
      .map((o) => text(o, "id")),
  );
  const left = new Map<string, bigint>();
  for (const t of transactions) {
    const currency = text(t, "currency");
    const known = left.get(currency) ?? 0n;
    const sale = isCaptured(t) && !lost.has(text(t, "order_id")) ? amount(t) : 0n;
    left.set(currency, known + sale - (isRefunded(t) ? amount(t) : 0n));
  }
  return Object.fromEntries([...left].map(([currency, sum]) => [currency, `${sum}`]));
}

interface Coupon {
  percentage: number | null;
  amount: number | null;
  max_discount_amount: number | null;
  duration: "once" | "repeating" | "forever";
  duration_in_cycles: number | null;
}

/** What a subscription's coupon takes off the plan's amount in its current cycle. */
function discountNow(subscription: WireObject, planAmount: number): number {
  const coupon = subscription["applied_coupon"] as Coupon | null;
  if (coupon === null) return 0;
  const covered = { once: 1, repeating: coupon.duration_in_cycles ?? 0, forever: Infinity };
  if ((subscription["current_billing_cycle"] as number) > covered[coupon.duration]) return 0;
  if (coupon.percentage === null) return Math.min(coupon.amount ?? 0, planAmount);
  // Two decimals at most: whole numbers are exact.
  const share = Math.floor((planAmount * Math.round(coupon.percentage * 100)) / 10_000);
  return Math.min(share, coupon.max_discount_amount ?? planAmount);
}

/** Recurring amounts a month, net of discounts, in each currency. */
export function recurring({ subscriptions }: ServiceState): Record<string, string> {
  const sums = new Map<string, bigint>();
  for (const s of subscriptions) {
    const plan = s["plan"] as { amount: number; currency: string };
    const cycle = s["billing_cycle"] as { interval: string; interval_count: number };
    const months = cycle.interval === "month" ? cycle.interval_count : (cycle.interval_count * 12) / 365.25;
    const isLive = s["status"] === "active" || s["status"] === "past_due";
    const monthly = isLive ? Math.round((plan.amount - discountNow(s, plan.amount)) / months) : 0;
    sums.set(plan.currency, (sums.get(plan.currency) ?? 0n) + BigInt(monthly));
  }
  return Object.fromEntries([...sums].map(([currency, sum]) => [currency, `${sum}`]));
}
