import { beforeAll, describe, expect, test } from "vitest";
import { aGenerated, aProduct, aPromo, orderWith, redemptionsOf } from "./coupon-support.ts";
import { type Json, aCustomer, aPlan, expectRefusal } from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();
let product: Json;
beforeAll(async () => {
  await sandbox.control("POST", "/clock", { now: "2026-03-01T12:00:00Z" });
  product = await aProduct(sandbox, 2000);
});

const validate = (body: object, options = {}) => sandbox.call("POST", "/v1/coupons/validate", body, options);

async function reasonFor(body: object): Promise<string> {
  const { status, body: answer } = await validate(body);
  expect([status, answer.valid]).toEqual([200, false]);
  return answer.reason;
}

test("an eligible code gives its terms, without an idempotency key", async () => {
  const coupon = await aPromo(sandbox, { percentage: 25, max_discount_amount: 300 });
  const { status, body } = await validate({ code: coupon.code, cart_amount: 2000 }, { idempotency: null });
  expect(status).toBe(200);
  expect(body).toEqual({
    valid: true,
    id: coupon.id,
    code: coupon.code,
    name: coupon.name,
    kind: "promo",
    percentage: 25,
    amount: null,
    max_discount_amount: 300,
    currency: "usd",
    duration: "once",
    duration_in_cycles: null,
    discount_amount: 300,
  });
});

test("an unknown code gives 200 and code_not_found", async () => {
  const { status, body } = await validate({ code: "NO-SUCH-CODE" });
  expect(status).toBe(200);
  expect(body).toEqual({ valid: false, reason: "code_not_found", code: "NO-SUCH-CODE" });
});

describe("gives 200 and the reason for a code that is", () => {
  test("inactive", async () => {
    const { id, code } = await aPromo(sandbox);
    await sandbox.ok("PATCH", `/v1/coupons/${id}`, { active: false });
    expect(await reasonFor({ code })).toBe("coupon_inactive");
  });

  test("archived", async () => {
    const { id, code } = await aPromo(sandbox);
    await sandbox.ok("DELETE", `/v1/coupons/${id}`);
    expect(await reasonFor({ code })).toBe("coupon_archived");
  });

  test("expired", async () => {
    const { code } = await aPromo(sandbox, { expires_at: "2026-03-01T13:00:00Z" });
    expect((await validate({ code })).body.valid).toBe(true);
    await sandbox.control("POST", "/clock", { now: "2026-03-01T13:00:00Z" });
    expect(await reasonFor({ code })).toBe("coupon_expired");
  });

  test("not begun", async () => {
    const { code } = await aPromo(sandbox, { starts_at: "2027-01-01T00:00:00Z" });
    expect(await reasonFor({ code })).toBe("coupon_not_started");
  });

  test("exhausted, as a whole or for one code", async () => {
    const customer = await aCustomer(sandbox);
    const whole = await aPromo(sandbox, { max_redemptions: 1 });
    await orderWith(sandbox, customer, [product], whole.code);
    expect(await reasonFor({ code: whole.code })).toBe("coupon_exhausted");
    const { codes } = await aGenerated(sandbox, 2, { max_redemptions_per_code: 1 });
    await orderWith(sandbox, customer, [product], codes[0].code);
    expect(await reasonFor({ code: codes[0].code })).toBe("coupon_code_exhausted");
    expect((await validate({ code: codes[1].code })).body.valid).toBe(true);
  });

  test("for another currency, told by the cart or by the plan", async () => {
    const { code } = await aPromo(sandbox, { amount: 100 });
    const mismatch = "coupon_currency_mismatch";
    expect(await reasonFor({ code, currency: "eur" })).toBe(mismatch);
    const plan = await aPlan(sandbox, "box-monthly-eur");
    expect(await reasonFor({ code, plan_id: plan.id })).toBe(mismatch);
  });

  test("for other products or plans", async () => {
    const plan = await aPlan(sandbox, "box-monthly-usd");
    const other = await aProduct(sandbox, 500);
    const { code } = await aPromo(sandbox, {
      product_scope: "specific",
      product_ids: [product.id],
      plan_scope: "none",
    });
    expect(await reasonFor({ code, product_ids: [other.id] })).toBe("product_not_eligible");
    expect(await reasonFor({ code, plan_id: plan.id })).toBe("plan_not_eligible");
    const mixed = await validate({ code, product_ids: [other.id, product.id] });
    expect(mixed.body.valid).toBe(true);
  });

  test("below the minimum, not for this customer, or no longer for them", async () => {
    const customer = await aCustomer(sandbox);
    const minimum = await aPromo(sandbox, { minimum_amount: 1000 });
    expect(await reasonFor({ code: minimum.code, cart_amount: 999 })).toBe("coupon_minimum_not_met");
    const once = await aPromo(sandbox, { max_redemptions_per_customer: 1 });
    await orderWith(sandbox, customer, [product], once.code);
    const sent = { customer_id: customer.id };
    expect(await reasonFor({ code: once.code, ...sent })).toBe("coupon_customer_limit_reached");
    const first = await aPromo(sandbox, { first_time_customer_only: true });
    expect(await reasonFor({ code: first.code, ...sent })).toBe("coupon_first_time_only");
  });
});

test("100 previews consume nothing", async () => {
  const coupon = await aPromo(sandbox, { max_redemptions: 1 });
  const previews = Array.from({ length: 100 }, () => validate({ code: coupon.code, cart_amount: 100 }));
  expect((await Promise.all(previews)).every(({ body }) => body.valid)).toBe(true);
  expect(await redemptionsOf(sandbox, coupon)).toBe(0);
});

test("preview math: min(amount, cart), and the floor of the percentage, then the cap", async () => {
  const preview = async (terms: object, cart_amount: number): Promise<number> => {
    const { code } = await aPromo(sandbox, { ...terms });
    return (await validate({ code, cart_amount })).body.discount_amount;
  };
  expect(await preview({ amount: 500 }, 2000)).toBe(500);
  expect(await preview({ amount: 500 }, 300)).toBe(300);
  expect(await preview({ percentage: 10 }, 333)).toBe(33);
  expect(await preview({ percentage: 12.5 }, 8)).toBe(1);
  expect(await preview({ percentage: 50, max_discount_amount: 100 }, 333)).toBe(100);
  expect(await preview({ percentage: 50, max_discount_amount: 200 }, 333)).toBe(166);
  const { code } = await aPromo(sandbox, {});
  expect((await validate({ code })).body.discount_amount).toBeNull();
});

test("a missing code is 400, a bad key 401, a key without coupons:read 403", async () => {
  expectRefusal(await validate({}), 400, "required_field", "code");
  expectRefusal(await validate({ code: "X" }, { key: "svc_test_sk_no" }), 401, "invalid_api_key");
  const { key } = await sandbox.control("POST", "/keys", {
    mode: "test",
    permissions: ["coupons:write"],
  });
  expectRefusal(await validate({ code: "X" }, { key }), 403, "insufficient_permissions");
});

test("previews in excess get 429 too_many_requests", async () => {
  const { rate_limits } = await sandbox.control("GET", "/switches");
  const limits = { ...rate_limits, enabled: true, coupon_validation: 2 };
  await sandbox.control("PUT", "/switches", { rate_limits: limits });
  const calls = [await validate({ code: "X" }), await validate({ code: "X" })];
  expect(calls.map(({ status }) => status)).toEqual([200, 200]);
  const excess = await validate({ code: "X" });
  expectRefusal(excess, 429, "too_many_requests");
  expect(Number(excess.headers.get("retry-after"))).toBeGreaterThan(0);
  await sandbox.control("PUT", "/switches", { rate_limits });
});

test("the code is matched in any letter case", async () => {
  const { code } = await aPromo(sandbox);
  expect((await validate({ code: ` ${code.toLowerCase()} ` })).body).toMatchObject({
    valid: true,
    code,
  });
});

test("inputs travel in the body: those of the query are not looked at", async () => {
  const { code } = await aPromo(sandbox);
  const inQuery = await sandbox.call("POST", `/v1/coupons/validate?code=${code}`, {});
  expectRefusal(inQuery, 400, "required_field", "code");
});

test("an id that is unknown is a fault of the request", async () => {
  const { code } = await aPromo(sandbox);
  const id = crypto.randomUUID();
  expectRefusal(await validate({ code, customer_id: id }), 400, "invalid_value", "customer_id");
  expectRefusal(await validate({ code, plan_id: id }), 400, "invalid_value", "plan_id");
  expectRefusal(await validate({ code, product_ids: [id] }), 400, "invalid_value", "product_ids");
});
