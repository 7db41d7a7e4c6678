import { beforeAll, describe, expect, test } from "vitest";
import { aGenerated, aProduct, aPromo, couponTerms, orderWith, redemptionsOf } from "./coupon-support.ts";
import { type Json, aCustomer, aPlan, expectRefusal } from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();
let product: Json;
beforeAll(async () => {
  await sandbox.control("POST", "/clock", { now: "2026-03-01T12:00:00Z" });
  product = await aProduct(sandbox, 2000);
});

const patch = (coupon: Json, change: object) => sandbox.call("PATCH", `/v1/coupons/${coupon.id}`, change);

async function redeemed(coupon: Json): Promise<Json> {
  const code = coupon.codes[0].code;
  const customer = await aCustomer(sandbox);
  expect((await orderWith(sandbox, customer, [product], code)).status).toBe(201);
  return coupon;
}

describe("changes", () => {
  test("before the first redemption every field can be patched", async () => {
    const plan = await aPlan(sandbox, "box-monthly-usd");
    const coupon = await aGenerated(sandbox, 0);
    const changes: Record<string, unknown>[] = [
      { name: "Another name" },
      { description: "Words" },
      { percentage: 20 },
      { max_discount_amount: 500 },
      { percentage: null, max_discount_amount: null, amount: 300 },
      { currency: "eur" },
      { duration: "repeating", duration_in_cycles: 4 },
      { duration: "forever", duration_in_cycles: null },
      { first_time_customer_only: true },
      { max_redemptions_per_code: 5 },
      { max_redemptions: 50 },
      { max_redemptions_per_customer: 2 },
      { minimum_amount: 100 },
      { starts_at: "2026-04-01T00:00:00.000Z" },
      { expires_at: "2026-05-01T00:00:00.000Z" },
      { product_scope: "specific", product_ids: [product.id] },
      { plan_scope: "specific", plan_ids: [plan.id] },
      { active: false },
    ];
    let before = await sandbox.ok("GET", `/v1/coupons/${coupon.id}`);
    for (const change of changes) {
      const { status, body } = await patch(coupon, change);
      expect(status, JSON.stringify(body)).toBe(200);
      expect(body).toEqual({ ...before, ...change, updated_at: body.updated_at });
      expect(body.updated_at > before.updated_at).toBe(true);
      before = body;
    }
    expect((await patch(coupon, {})).body).toEqual(before);
    expectRefusal(await patch(coupon, { kind: "promo" }), 400, "invalid_value", "kind");
    expectRefusal(await patch(coupon, { percentage: 10 }), 400, "invalid_value", "percentage");
    expect(await sandbox.ok("GET", `/v1/coupons/${coupon.id}`)).toEqual(before);
  });

  const locked: [string, unknown][] = [
    ["percentage", 50],
    ["amount", 500],
    ["max_discount_amount", 5],
    ["currency", "eur"],
    ["duration", "forever"],
    ["duration_in_cycles", 9],
    ["first_time_customer_only", true],
    ["max_redemptions_per_code", 3],
    ["product_scope", "none"],
    ["plan_scope", "none"],
    ["plan_ids", ["x"]],
    ["product_ids", ["x"]],
  ];
  test.each(locked)("after the first redemption %s is locked", async (field, value) => {
    const coupon = await redeemed(await aGenerated(sandbox, 1));
    expectRefusal(await patch(coupon, { [field]: value }), 422, "field_locked", field);
    expect((await sandbox.ok("GET", `/v1/coupons/${coupon.id}`))[field]).toEqual(coupon[field]);
  });

  test("after a redemption a promo's name is locked, a generated coupon's is not", async () => {
    const promo = await redeemed(await aPromo(sandbox));
    expectRefusal(await patch(promo, { name: "Other" }), 422, "field_locked", "name");
    const generated = await redeemed(await aGenerated(sandbox, 1));
    expect((await patch(generated, { name: "Other" })).body.name).toBe("Other");
  });

  test("the code of a promo that nobody redeemed follows its name", async () => {
    const promo = await aPromo(sandbox);
    await aPromo(sandbox, { name: "Occupied" });
    expectRefusal(await patch(promo, { name: "occupied" }), 409, "resource_already_exists", "name");
    await patch(promo, { name: "Renamed" });
    const { data } = await sandbox.ok("GET", `/v1/coupons/${promo.id}/codes`);
    expect(data.map(({ code }: Json) => code)).toEqual(["RENAMED"]);
    const customer = await aCustomer(sandbox);
    const old = await orderWith(sandbox, customer, [product], promo.code);
    expectRefusal(old, 400, "code_not_found", "coupon_code");
    expect((await orderWith(sandbox, customer, [product], "renamed")).status).toBe(201);
  });

  test("starts_at is locked once its moment has passed", async () => {
    const coupon = await aGenerated(sandbox, 0, { starts_at: "2026-03-05T00:00:00Z" });
    expect((await patch(coupon, { starts_at: "2026-03-04T00:00:00Z" })).status).toBe(200);
    await sandbox.control("POST", "/clock", { now: "2026-03-04T00:00:00Z" });
    const late = await patch(coupon, { starts_at: "2026-03-09T00:00:00Z" });
    expectRefusal(late, 422, "field_locked", "starts_at");
  });

  const editable: [string, unknown][] = [
    ["description", "New words"],
    ["active", false],
    ["expires_at", "2027-01-01T00:00:00.000Z"],
    ["minimum_amount", 700],
    ["max_redemptions", 9],
    ["max_redemptions_per_customer", 2],
  ];
  test.each(editable)("after redemption %s stays editable", async (field, value) => {
    const coupon = await redeemed(await aGenerated(sandbox, 1));
    const { status, body } = await patch(coupon, { [field]: value });
    expect([status, body[field]]).toEqual([200, value]);
  });

  test("max_redemptions does not go below the redemptions so far", async () => {
    const coupon = await redeemed(await redeemed(await aGenerated(sandbox, 1)));
    const below = await patch(coupon, { max_redemptions: 1 });
    expectRefusal(below, 400, "invalid_value", "max_redemptions");
    expect((await patch(coupon, { max_redemptions: 2 })).body.max_redemptions).toBe(2);
  });

  test("a locked field with its unchanged value is accepted", async () => {
    const coupon = await redeemed(await aGenerated(sandbox, 1));
    const { percentage, currency, product_ids } = coupon;
    const same = { percentage, currency, product_ids, description: "New" };
    expect((await patch(coupon, same)).body.description).toBe("New");
  });
});

describe("archiving", () => {
  const archive = (coupon: Json, archived: unknown) =>
    sandbox.call("POST", `/v1/coupons/${coupon.id}/archive`, { archived });

  test("DELETE archives: inactive, hidden, retrievable, with its history", async () => {
    const coupon = await redeemed(await aGenerated(sandbox, 1));
    const gone = await sandbox.ok("DELETE", `/v1/coupons/${coupon.id}`);
    expect(gone).toMatchObject({ id: coupon.id, active: false, redemption_count: 1 });
    expect(Date.parse(gone.archived_at)).not.toBeNaN();
    expect(await sandbox.ok("GET", `/v1/coupons/${coupon.id}`)).toEqual(gone);
    const { data } = await sandbox.ok("GET", "/v1/coupons?limit=100");
    expect(data.some(({ id }: Json) => id === coupon.id)).toBe(false);
    expect((await sandbox.ok("GET", `/v1/coupons/${coupon.id}/codes`)).data).toHaveLength(1);
    expect(await sandbox.ok("DELETE", `/v1/coupons/${coupon.id}`)).toEqual(gone);
  });

  test("archiving by POST does the same, and twice changes nothing", async () => {
    const coupon = await aGenerated(sandbox, 0);
    const { body } = await archive(coupon, true);
    expect(body.active).toBe(false);
    await sandbox.control("POST", "/clock", { advance_seconds: 60 });
    expect((await archive(coupon, true)).body).toEqual(body);
  });

  test("taking it back leaves it inactive until a PATCH activates it", async () => {
    const coupon = await aPromo(sandbox);
    await archive(coupon, true);
    expectRefusal(await patch(coupon, { active: true }), 400, "invalid_state_transition", "active");
    expect((await archive(coupon, false)).body).toMatchObject({ archived_at: null, active: false });
    const customer = await aCustomer(sandbox);
    const early = await orderWith(sandbox, customer, [product], coupon.code);
    expectRefusal(early, 400, "coupon_inactive", "coupon_code");
    expect((await patch(coupon, { active: true })).body.active).toBe(true);
    expect((await orderWith(sandbox, customer, [product], coupon.code)).status).toBe(201);
  });

  test("archived must be a boolean", async () => {
    const coupon = await aGenerated(sandbox, 0);
    expectRefusal(await archive(coupon, undefined), 400, "required_field", "archived");
    for (const wrong of ["true", 1, null]) {
      expectRefusal(await archive(coupon, wrong), 400, "invalid_value", "archived");
    }
  });
});

describe("codes", () => {
  const mint = (coupon: Json, body: object, idempotency?: string) =>
    sandbox.call("POST", `/v1/coupons/${coupon.id}/codes`, body, idempotency === undefined ? {} : { idempotency });
  const all = async (coupon: Json): Promise<string[]> => {
    const codes: string[] = [];
    for (let after = ""; ;) {
      const page = await sandbox.ok("GET", `/v1/coupons/${coupon.id}/codes?limit=100${after}`);
      codes.push(...page.data.map(({ code }: Json) => code));
      if (!page.has_more) return codes;
      after = `&starting_after=${page.cursors.next}`;
    }
  };

  test("a promo coupon mints no codes", async () => {
    const promo = await aPromo(sandbox);
    expectRefusal(await mint(promo, { count: 1 }), 422, "field_locked");
    expect(await all(promo)).toEqual([promo.code]);
  });

  test("exactly one of count and codes, at most 500", async () => {
    const coupon = await aGenerated(sandbox, 0);
    expectRefusal(await mint(coupon, {}), 400, "invalid_value", "count");
    const both = await mint(coupon, { count: 1, codes: ["ABCDEFGH"] });
    expectRefusal(both, 400, "invalid_value", "count");
    const codes = Array.from({ length: 501 }, (_, i) => `LITERAL-${i}`);
    expectRefusal(await mint(coupon, { codes }), 400, "invalid_value", "codes");
    expect(await all(coupon)).toEqual([]);
    expect((await mint(coupon, { codes: codes.slice(0, 500) })).body.data).toHaveLength(500);
  });

  test("500 random codes: unambiguous, unique, listed page by page", async () => {
    const coupon = await aGenerated(sandbox, 0);
    for (const count of [501, 0, -1, 1.5]) {
      expectRefusal(await mint(coupon, { count }), 400, "invalid_value", "count");
    }
    const { status, body } = await mint(coupon, { count: 500 });
    expect(status).toBe(201);
    const codes: string[] = body.data.map(({ code }: Json) => code);
    expect(new Set(codes).size).toBe(500);
    expect(codes.every((code) => /^[2-9A-HJ-NP-Z-]{8,50}$/.test(code))).toBe(true);
    expect((await all(coupon)).toSorted()).toEqual(codes.toSorted());
    const { generated_code_count } = await sandbox.ok("GET", `/v1/coupons/${coupon.id}`);
    expect(generated_code_count).toBe(500);
  });

  test("a literal has 8 to 50 of A-Z, 0-9 and -", async () => {
    const coupon = await aGenerated(sandbox, 0);
    for (const code of ["A".repeat(7), "A".repeat(51), "abcdefgh", "ABCD_EFGH", "ABCD EFGH"]) {
      const refused = await mint(coupon, { codes: ["FINE-CODE", code] });
      expectRefusal(refused, 400, "invalid_format", "codes.1");
    }
    const codes = ["A".repeat(8), "9-".repeat(25)];
    expect((await mint(coupon, { codes })).status).toBe(201);
    expect((await all(coupon)).toSorted()).toEqual(codes.toSorted());
  });

  test("a literal that exists, or is there twice, mints nothing of the batch", async () => {
    const coupon = await aGenerated(sandbox, 0);
    await aPromo(sandbox, { name: "IN-USE-ALREADY" });
    const taken = await mint(coupon, { codes: ["NEW-ONE-1", "IN-USE-ALREADY"] });
    expectRefusal(taken, 409, "resource_already_exists", "codes.1");
    const twice = await mint(coupon, { codes: ["NEW-ONE-1", "NEW-ONE-1"] });
    expectRefusal(twice, 400, "invalid_value", "codes");
    expect(await all(coupon)).toEqual([]);
  });

  test("random codes bear the coupon's prefix", async () => {
    const terms = couponTerms({ codes: { count: 2, prefix: "TEA-" } });
    const coupon = await sandbox.ok("POST", "/v1/coupons", terms);
    expect(coupon.code_prefix).toBe("TEA-");
    await mint(coupon, { count: 2 });
    const codes = await all(coupon);
    expect(codes).toHaveLength(4);
    expect(codes.every((code) => code.startsWith("TEA-"))).toBe(true);
  });

  test("a replay gives the batch that was minted first", async () => {
    const coupon = await aGenerated(sandbox, 0);
    const key = crypto.randomUUID();
    const first = await mint(coupon, { count: 5 }, key);
    expect((await mint(coupon, { count: 5 }, key)).body).toEqual(first.body);
    expect(await all(coupon)).toHaveLength(5);
  });

  test("a minted code can be redeemed and counts for itself and its coupon", async () => {
    const coupon = await aGenerated(sandbox, 2);
    await redeemed(coupon);
    expect(await redemptionsOf(sandbox, coupon)).toBe(1);
    const { data } = await sandbox.ok("GET", `/v1/coupons/${coupon.id}/codes`);
    const counts = data.map((code: Json) => [code.code, code.redemption_count]);
    expect(Object.fromEntries(counts)).toEqual({
      [coupon.codes[0].code]: 1,
      [coupon.codes[1].code]: 0,
    });
  });
});
