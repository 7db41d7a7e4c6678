import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { aGenerated, aProduct, aPromo, ordersOf, orderWith, redemptionsOf } from "./coupon-support.ts";
import { type Json, aCustomer, eventsOf, expectRefusal } from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();
let customer: Json;
beforeAll(async () => {
  await sandbox.control("POST", "/clock", { now: "2026-03-01T12:00:00Z" });
  customer = await aCustomer(sandbox);
});

/** The order of one product of a price. */
async function discounted(price: number, terms: Record<string, unknown>): Promise<Json> {
  const { code } = await aPromo(sandbox, terms);
  const { status, body } = await orderWith(sandbox, customer, [await aProduct(sandbox, price)], code);
  expect(status, JSON.stringify(body)).toBe(201);
  expect(body.total).toBe(body.subtotal - body.discount_amount);
  expect(body.applied_coupon.discount_amount).toBe(body.discount_amount);
  return body;
}

const discountOf = async (price: number, terms: Record<string, unknown>): Promise<number> =>
  (await discounted(price, terms)).discount_amount;

describe("discounts", () => {
  test("a code is accepted in any letter case", async () => {
    const { code } = await aPromo(sandbox, { name: "Mixed Case" });
    const product = await aProduct(sandbox, 1000);
    for (const sent of [code, "mixed case", " MiXeD cAsE "]) {
      const { body } = await orderWith(sandbox, customer, [product], sent);
      expect(body).toMatchObject({ total: 900, applied_coupon: { code: "MIXED CASE" } });
    }
  });

  test("an amount takes off at most the eligible total", async () => {
    expect(await discountOf(2000, { amount: 500 })).toBe(500);
    expect(await discountOf(300, { amount: 500 })).toBe(300);
  });

  test("a percentage is floored", async () => {
    expect(await discountOf(333, { percentage: 10 })).toBe(33);
    expect(await discountOf(99, { percentage: 1 })).toBe(0);
  });

  test("applies the cap after the floor", async () => {
    expect(await discountOf(333, { percentage: 50, max_discount_amount: 166 })).toBe(166);
    expect(await discountOf(333, { percentage: 50, max_discount_amount: 100 })).toBe(100);
    expect(await discountOf(333, { percentage: 50, max_discount_amount: 900 })).toBe(166);
  });

  test("a fractional percentage is exact", async () => {
    expect(await discountOf(1000, { percentage: 12.5 })).toBe(125);
    expect(await discountOf(8, { percentage: 12.5 })).toBe(1);
    // 1000 × 32.3 / 100 is 322.99999999999994 in doubles.
    expect(await discountOf(1000, { percentage: 32.3 })).toBe(323);
  });

  test("only eligible items are discounted; with none the order is refused", async () => {
    const [inScope, outside] = [await aProduct(sandbox, 1000), await aProduct(sandbox, 5000)];
    const scope = { product_scope: "specific", product_ids: [inScope.id] };
    const half = await aPromo(sandbox, { percentage: 50, ...scope });
    const { body } = await orderWith(sandbox, customer, [inScope, outside], half.code);
    expect(body).toMatchObject({ subtotal: 6000, discount_amount: 500, total: 5500 });
    const fixed = await aPromo(sandbox, { amount: 3000, ...scope });
    const capped = await orderWith(sandbox, customer, [inScope, outside], fixed.code);
    expect(capped.body.discount_amount).toBe(1000);
    const refused = await orderWith(sandbox, customer, [outside], half.code);
    expectRefusal(refused, 400, "product_not_eligible", "coupon_code");
    const none = await aPromo(sandbox, { product_scope: "none" });
    const never = await orderWith(sandbox, customer, [inScope], none.code);
    expectRefusal(never, 400, "product_not_eligible", "coupon_code");
  });

  test("the preview and the order give the same discount for the same cart", async () => {
    const terms = fc.oneof(
      fc.record({ amount: fc.integer({ min: 1, max: 20_000 }) }),
      fc.record({
        percentage: fc.integer({ min: 100, max: 10_000 }).map((hundredths) => hundredths / 100),
        max_discount_amount: fc.option(fc.integer({ min: 1, max: 5000 })),
      }),
    );
    const prices = fc.array(fc.integer({ min: 1, max: 9999 }), { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(terms, prices, async (term, amounts) => {
        const { code } = await aPromo(sandbox, term);
        const products = await Promise.all(amounts.map((amount) => aProduct(sandbox, amount)));
        const cart_amount = amounts.reduce((sum, amount) => sum + amount, 0);
        const preview = await sandbox.ok("POST", "/v1/coupons/validate", { code, cart_amount });
        const { body } = await orderWith(sandbox, customer, products, code);
        expect(body.subtotal).toBe(cart_amount);
        expect(body.discount_amount).toBe(preview.discount_amount);
      }),
      { numRuns: 25 },
    );
  });
});

describe("refusals leave no order behind", () => {
  async function refuses(code: string, reason: string, who = customer, price = 2000) {
    const before = await ordersOf(sandbox, who);
    const product = await aProduct(sandbox, price);
    const refused = await orderWith(sandbox, who, [product], code);
    expectRefusal(refused, 400, reason, "coupon_code");
    expect(await ordersOf(sandbox, who)).toEqual(before);
  }

  test("expired", async () => {
    const { code } = await aPromo(sandbox, { expires_at: "2026-03-01T12:00:10Z" });
    await sandbox.control("POST", "/clock", { now: "2026-03-01T12:00:10Z" });
    await refuses(code, "coupon_expired");
  });

  test("unknown", () => refuses("NO-SUCH-CODE", "code_not_found"));

  test("inactive", async () => {
    const { id, code } = await aPromo(sandbox);
    await sandbox.ok("PATCH", `/v1/coupons/${id}`, { active: false });
    await refuses(code, "coupon_inactive");
  });

  test("archived", async () => {
    const { id, code } = await aPromo(sandbox);
    await sandbox.ok("DELETE", `/v1/coupons/${id}`);
    await refuses(code, "coupon_archived");
  });

  test("not yet started", async () => {
    const { code } = await aPromo(sandbox, { starts_at: "2027-01-01T00:00:00Z" });
    await refuses(code, "coupon_not_started");
  });

  test("exhausted", async () => {
    const { code } = await aPromo(sandbox, { max_redemptions: 1 });
    await orderWith(sandbox, customer, [await aProduct(sandbox, 500)], code);
    await refuses(code, "coupon_exhausted");
  });

  test("below the minimum", async () => {
    const { code } = await aPromo(sandbox, { minimum_amount: 2001 });
    await refuses(code, "coupon_minimum_not_met");
  });

  test("another currency", async () => {
    const { code } = await aPromo(sandbox, { amount: 100, currency: "eur" });
    await refuses(code, "coupon_currency_mismatch");
    const inEuro = await orderWith(sandbox, customer, [await aProduct(sandbox, 900, "eur")], code);
    expect(inEuro.body.total).toBe(800);
  });

  test("not a first-time customer", async () => {
    const { code } = await aPromo(sandbox, { first_time_customer_only: true });
    await refuses(code, "coupon_first_time_only");
  });

  test("over the limit of the customer", async () => {
    const { code } = await aPromo(sandbox, { max_redemptions_per_customer: 1 });
    await orderWith(sandbox, customer, [await aProduct(sandbox, 500)], code);
    await refuses(code, "coupon_customer_limit_reached");
  });

  test("a code of the other environment is unknown", async () => {
    const live = await sandbox.ok(
      "POST",
      "/v1/coupons",
      { kind: "promo", name: "Live only", duration: "once", percentage: 5 },
      { key: "svc_live_sk_sandbox" },
    );
    await refuses(live.codes[0].code, "code_not_found");
  });
});

describe("redemption", () => {
  test("applied_coupon is a snapshot with every field of the table", async () => {
    const [{ code }] = (await aGenerated(sandbox, 1, { name: "Was", percentage: 20 })).codes;
    const { body } = await orderWith(sandbox, customer, [await aProduct(sandbox, 1000)], code);
    const { id } = body.applied_coupon;
    expect(body.applied_coupon).toEqual({
      id,
      code,
      name: "Was",
      kind: "generated",
      percentage: 20,
      amount: null,
      max_discount_amount: null,
      currency: "usd",
      duration: "once",
      duration_in_cycles: null,
      discount_amount: 200,
    });
    await sandbox.ok("PATCH", `/v1/coupons/${id}`, { name: "Is", active: false });
    await sandbox.ok("DELETE", `/v1/coupons/${id}`);
    const later = await sandbox.ok("GET", `/v1/orders/${body.id}`);
    expect(later.applied_coupon).toEqual(body.applied_coupon);
    const [event] = await eventsOf(sandbox, body.id);
    expect(event.data.object.applied_coupon).toEqual(body.applied_coupon);
    const amountOff = await discounted(1000, { amount: 100 });
    expect(amountOff.applied_coupon).toMatchObject({ percentage: null, amount: 100 });
  });

  test("each redeeming order counts once, a declined one too, a replay not", async () => {
    const coupon = await aPromo(sandbox);
    const product = await aProduct(sandbox, 1000);
    await orderWith(sandbox, customer, [product], coupon.code);
    const declining = await aCustomer(sandbox, "card_visa_declined");
    const declined = await orderWith(sandbox, declining, [product], coupon.code);
    expect(declined.body).toMatchObject({ status: "failed", discount_amount: 100 });
    expect(await redemptionsOf(sandbox, coupon)).toBe(2);
    const idempotency = crypto.randomUUID();
    const body = {
      customer_id: customer.id,
      payment_method_id: customer.default_payment_method_id,
      items: [{ product_id: product.id, quantity: 1 }],
      coupon_code: coupon.code,
    };
    const first = await sandbox.ok("POST", "/v1/orders", body, { idempotency });
    expect(await sandbox.ok("POST", "/v1/orders", body, { idempotency })).toEqual(first);
    expect(await redemptionsOf(sandbox, coupon)).toBe(3);
    const refused = await sandbox.call("POST", "/v1/orders", { ...body, items: [] });
    expectRefusal(refused, 400, "invalid_value");
    expect(await redemptionsOf(sandbox, coupon)).toBe(3);
  });

  test("a refund gives back what was paid, not the discount", async () => {
    const order = await discounted(1000, { percentage: 25 });
    const refunded = await sandbox.ok("POST", `/v1/orders/${order.id}/refund`);
    expect(refunded.status).toBe("refunded");
    expect(refunded.transactions.map((t: Json) => t.amount)).toEqual([750, 750]);
  });

  test("an order that costs nothing succeeds without the gateway, whatever the card", async () => {
    const { code } = await aPromo(sandbox, { percentage: 100 });
    const declining = await aCustomer(sandbox, "card_visa_declined");
    const product = await aProduct(sandbox, 1000);
    const { body: order } = await orderWith(sandbox, declining, [product], code);
    expect(order).toMatchObject({ status: "succeeded", total: 0, discount_amount: 1000 });
    expect(order.transactions).toMatchObject([
      { type: "sale", status: "succeeded", amount: 0, processor_transaction_id: null },
    ]);
    const sale = await sandbox.ok("GET", `/v1/transactions/${order.transactions[0].id}`);
    expect(sale.processor_response).toBeNull();
    const refund = await sandbox.call("POST", `/v1/orders/${order.id}/refund`);
    expectRefusal(refund, 400, "invalid_value", "amount");
  });
});
