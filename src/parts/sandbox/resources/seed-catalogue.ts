import type { PlanRecord } from "./plans/plan.ts";
import type { ProductRecord } from "./products/product.ts";
import type { Space } from "../engine/space.ts";

type ProductSeed = [sku: string, name: string, amount: number, currency: string];

/** No product requires shipping, so that a first order needs no address. */
const productSeeds: readonly ProductSeed[] = [
  ["tea-green", "Green tea", 1250, "usd"],
  ["tea-black", "Black tea", 990, "usd"],
  ["teapot", "Cast-iron teapot", 6400, "usd"],
  ["cup-pair", "Pair of cups", 2899, "usd"],
  ["tasting", "Online tasting", 3500, "usd"],
  ["gift-card", "Gift card", 5000, "usd"],
  ["tea-green-eu", "Green tea (EU)", 1190, "eur"],
  ["teapot-eu", "Cast-iron teapot (EU)", 5950, "eur"],
];

const cadences = [
  ["daily", "Daily", "day", 1, 199],
  ["weekly", "Weekly", "day", 7, 990],
  ["biweekly", "Bi-weekly", "day", 14, 1790],
  ["monthly", "Monthly", "month", 1, 2900],
  ["quarterly", "Quarterly", "month", 3, 7900],
  ["annual", "Annual", "month", 12, 29_900],
] as const;

const setupFee = 1500;

/** Earlier than anything else, and independent of the clock: the same seed gives the same catalogue. */
const openedAt = "2024-01-01T00:00:00.000Z";

/** Products, and plans of every cadence, with and without a setup fee, in two currencies. */
export function seedCatalogue(space: Space): void {
  const at = openedAt;
  const seeded = { metadata: {}, created_at: at, updated_at: at };
  for (const [sku, name, amount, currency] of productSeeds) {
    const product: ProductRecord = {
      ...seeded,
      id: space.ids.uuid(),
      name,
      description: null,
      pricing: { amount, currency },
      requires_shipping: false,
      sku,
      stock_status: "in_stock",
      active: true,
      deleted: false,
    };
    space.products.insert(product);
    space.skus.set(sku, product.id);
  }
  for (const currency of ["usd", "eur"]) {
    const productId = space.skus.get(currency === "usd" ? "tea-green" : "tea-green-eu");
    for (const fee of [0, setupFee]) {
      for (const [handle, title, interval, interval_count, amount] of cadences) {
        const plan: PlanRecord = {
          id: space.ids.uuid(),
          name: `${title} box${fee > 0 ? " with setup" : ""} (${currency.toUpperCase()})`,
          plan_code: `box-${handle}${fee > 0 ? "-setup" : ""}-${currency}`,
          description: fee > 0 ? "A box of tea, with a setup fee in the first cycle." : null,
          amount,
          one_time_amount: fee,
          currency,
          billing_cycle: {
            interval,
            interval_count,
            anchor_day: interval === "month" ? "signup_date" : null,
          },
          billing_cycles: 0,
          products: productId === undefined ? [] : [{ id: productId, quantity: 1 }],
          pricing_tiers: [],
          active: true,
          created_at: at,
          updated_at: at,
        };
        space.plans.insert(plan);
      }
    }
  }
}
