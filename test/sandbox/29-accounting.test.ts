import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import {
  expectCyclesWithoutGap,
  expectOrdersToAddUp,
  expectRedemptionsToAgree,
  expectSoundAccounts,
  expectSumsToAgree,
} from "./accounting.ts";
import { aPromo } from "./coupon-support.ts";
import { type Json, aCustomer, aPlan, productsOf } from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();

describe("after generated traffic", () => {
  let state: Json;
  beforeAll(async () => {
    await sandbox.control("POST", "/clock", { now: "2026-01-15T10:00:00Z" });
    await sandbox.control("POST", "/traffic", { orders: 600, subscriptions: 80, seed: 7 });
    state = await sandbox.control("GET", "/snapshot");
  });

  test("every order adds up", () => expectOrdersToAddUp(state));

  test("succeeded cycles are 1 to k, and nothing is sold after an end", () => expectCyclesWithoutGap(state));

  test("transactions and orders give the same sums, and the same objects", () => expectSumsToAgree(state));

  test("coupons count what was redeemed", () => expectRedemptionsToAgree(state));
});

const cards = [
  "card_visa",
  "card_visa_declined",
  "card_declined_once",
  "card_renewal_declined",
  "card_renewal_declined_once",
  "card_refund_failed_once",
  "card_chargeback",
] as const;

/** One thing that a merchant, a cardholder or time does. Numbers pick among what is there, so that every history can be played. */
type Step =
  | { do: "order"; product: number; quantity: number; coupon: number | null }
  | { do: "subscribe"; plan: string; cycles: number; coupon: number | null }
  | { do: "refund"; order: number; part: number | null }
  | { do: "retry"; order: number }
  | { do: "dispute"; order: number; move: string }
  | { do: "cancel"; subscription: number }
  | { do: "wait"; days: number };

const index = fc.nat({ max: 50 });
const coupon = fc.option(fc.nat({ max: 2 }));
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant("order" as const),
    product: index,
    quantity: fc.integer({ min: 1, max: 3 }),
    coupon,
  }),
  fc.record({
    do: fc.constant("subscribe" as const),
    plan: fc.constantFrom("box-daily-usd", "box-weekly-setup-usd", "box-monthly-eur"),
    cycles: fc.nat({ max: 3 }),
    coupon,
  }),
  fc.record({
    do: fc.constant("refund" as const),
    order: index,
    part: fc.option(fc.integer({ min: 1, max: 6000 })),
  }),
  fc.record({ do: fc.constant("retry" as const), order: index }),
  fc.record({
    do: fc.constant("dispute" as const),
    order: index,
    move: fc.constantFrom("chargeback", "chargeback_accept", "chargeback_dismiss", "void"),
  }),
  fc.record({ do: fc.constant("cancel" as const), subscription: index }),
  fc.record({ do: fc.constant("wait" as const), days: fc.constantFrom(0.01, 1, 3, 8, 35) }),
);

/** Plays a history by calls alone. A refusal is an answer as any other; a 500 is none. */
async function play(card: string, steps: readonly Step[]): Promise<void> {
  const customer = await aCustomer(sandbox, card);
  const payer = {
    customer_id: customer.id,
    payment_method_id: customer.default_payment_method_id,
  };
  const products = await productsOf(sandbox);
  const promos = [
    await aPromo(sandbox, { percentage: 33.3, duration: "repeating", duration_in_cycles: 2 }),
    await aPromo(sandbox, { amount: 1500, duration: "forever", max_redemptions: 3 }),
    await aPromo(sandbox, { percentage: 100, max_redemptions_per_code: 1 }),
  ];
  const codeOf = (chosen: number | null) => (chosen === null ? {} : { coupon_code: promos[chosen]?.code as string });
  const orders: string[] = [];
  const subscriptions: string[] = [];
  const nth = (ids: string[], n: number) => ids[n % ids.length] ?? crypto.randomUUID();

  for (const taken of steps) {
    if (taken.do === "wait") {
      await sandbox.control("POST", "/clock", { advance_seconds: taken.days * 86_400 });
      const { data } = await sandbox.ok("GET", `/v1/orders?limit=100&customer_id=${customer.id}`);
      orders.splice(0, orders.length, ...data.map(({ id }: Json) => id as string));
    } else if (taken.do === "dispute") {
      const path = `/_sandbox/orders/${nth(orders, taken.order)}/${taken.move}`;
      expect((await fetch(`${sandbox.url}${path}`, { method: "POST" })).status).toBeLessThan(500);
    } else {
      const { status, body } = await call(taken);
      expect(status).toBeLessThan(500);
      if (status === 201) (taken.do === "order" ? orders : subscriptions).push(body.id as string);
    }
  }

  async function call(taken: Exclude<Step, { do: "wait" | "dispute" }>) {
    switch (taken.do) {
      case "order": {
        const product_id = products[taken.product % products.length]?.id as string;
        const items = [{ product_id, quantity: taken.quantity }];
        return sandbox.call("POST", "/v1/orders", { ...payer, items, ...codeOf(taken.coupon) });
      }
      case "subscribe": {
        const plan = await aPlan(sandbox, taken.plan);
        const { interval, interval_count } = plan.billing_cycle;
        return sandbox.call("POST", "/v1/subscriptions", {
          ...payer,
          plan_id: plan.id,
          billing_cycle: { interval, interval_count },
          billing_cycles: taken.cycles,
          ...codeOf(taken.coupon),
        });
      }
      case "refund": {
        const body = taken.part === null ? {} : { amount: taken.part };
        return sandbox.call("POST", `/v1/orders/${nth(orders, taken.order)}/refund`, body);
      }
      case "retry":
        return sandbox.call("POST", `/v1/orders/${nth(orders, taken.order)}/retry`);
      case "cancel":
        return sandbox.call("DELETE", `/v1/subscriptions/${nth(subscriptions, taken.subscription)}`);
    }
  }
}

test("the books balance after every step that calls, cardholders and time can take", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...cards),
      fc.array(step, { minLength: 5, maxLength: 30 }),
      async (card, steps) => {
        await sandbox.control("POST", "/reset", { seed: 1 });
        await sandbox.control("POST", "/clock", { now: "2026-01-31T10:00:00Z" });
        await play(card, steps);
        expectSoundAccounts(await sandbox.control("GET", "/snapshot"));
      },
    ),
    { numRuns: 40 },
  );
});
