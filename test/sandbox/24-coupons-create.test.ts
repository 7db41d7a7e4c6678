import { beforeAll, describe, expect, test } from "vitest";

import {
  aGenerated,
  aProduct,
  aPromo,
  couponTerms,
  ordersOf,
  orderWith,
} from "./coupon-support.ts";
import {
  type Called,
  type Json,
  aCustomer,
  aPlan,
  expectRefusal,
  startTestSandbox,
} from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();
let product: Json;
beforeAll(async () => {
  await sandbox.control("POST", "/clock", { now: "2026-03-01T12:00:00Z" });
  product = await aProduct(sandbox, 2000);
});

const create = (terms: Record<string, unknown>): Promise<Called> =>
  sandbox.call("POST", "/v1/coupons", couponTerms(terms));

async function refuses(terms: Record<string, unknown>, param: string, code = "invalid_value") {
  expectRefusal(await create(terms), 400, code, param);
}

describe("terms", () => {
  test("[S] 439 exactly one of percentage and amount", async () => {
    await refuses({ percentage: 10, amount: 100 }, "percentage");
    await refuses({ percentage: null }, "percentage");
    expect((await create({ percentage: 10 })).body).toMatchObject({ percentage: 10, amount: null });
    expect((await create({ amount: 100 })).body).toMatchObject({ percentage: null, amount: 100 });
  });

  test.each([1, 100, 12.5])("[S] 440 a percentage of %d is accepted", async (percentage) => {
    expect((await create({ percentage })).body.percentage).toBe(percentage);
  });

  test.each([0, 0.5, 101, -5, "10"])("[S] 440 a percentage of %j is refused", (percentage) =>
    refuses({ percentage }, "percentage"),
  );

  test("[S] 441 a cap goes with a percentage only", async () => {
    await refuses({ amount: 100, max_discount_amount: 50 }, "max_discount_amount");
    const { body } = await create({ percentage: 50, max_discount_amount: 500 });
    expect(body.max_discount_amount).toBe(500);
  });

  test("[S] 442 a percentage coupon is in usd; an amount has any currency", async () => {
    await refuses({ percentage: 10, currency: "eur" }, "currency");
    expect((await create({ percentage: 10 })).body.currency).toBe("usd");
    expect((await create({ amount: 100, currency: "eur" })).body.currency).toBe("eur");
  });

  test("[S] 447 duration is once, repeating or forever; repeating says how long", async () => {
    for (const duration of ["once", "forever"]) {
      expect((await create({ duration })).body.duration).toBe(duration);
    }
    const { body } = await create({ duration: "repeating", duration_in_cycles: 3 });
    expect(body).toMatchObject({ duration: "repeating", duration_in_cycles: 3 });
    await refuses({ duration: "repeating" }, "duration_in_cycles");
    await refuses({ duration: "twice" }, "duration");
    await refuses({ duration: undefined }, "duration", "required_field");
  });

  test("[A] 448 duration_in_cycles with another duration is refused", () =>
    refuses({ duration: "once", duration_in_cycles: 3 }, "duration_in_cycles"));

  test("[S] 449 scopes are none, all or specific; specific names known products or plans", async () => {
    const plan = await aPlan(sandbox, "box-monthly-usd");
    const ids: Record<string, string> = { product: product.id, plan: plan.id };
    for (const kind of ["product", "plan"]) {
      for (const scope of ["none", "all"]) {
        expect((await create({ [`${kind}_scope`]: scope })).body[`${kind}_scope`]).toBe(scope);
      }
      const specific = { [`${kind}_scope`]: "specific" };
      const named = { ...specific, [`${kind}_ids`]: [ids[kind]] };
      expect((await create(named)).body).toMatchObject(named);
      await refuses({ [`${kind}_scope`]: "some" }, `${kind}_scope`);
      await refuses(specific, `${kind}_ids`);
      await refuses({ ...specific, [`${kind}_ids`]: [crypto.randomUUID()] }, `${kind}_ids`);
      await refuses({ [`${kind}_ids`]: [ids[kind]] }, `${kind}_ids`);
    }
  });

  test("[A] 451 a coupon does not expire before it starts, nor in the past", async () => {
    const window = { starts_at: "2026-05-02T00:00:00Z", expires_at: "2026-05-01T00:00:00Z" };
    await refuses(window, "expires_at");
    await refuses({ expires_at: "2026-02-01T00:00:00Z" }, "expires_at");
    await refuses({ expires_at: "tomorrow" }, "expires_at", "invalid_format");
  });

  test("[S] 452 defaults", async () => {
    const { body } = await create({});
    expect(body).toMatchObject({
      kind: "generated",
      active: true,
      archived_at: null,
      product_scope: "all",
      plan_scope: "all",
      product_ids: [],
      plan_ids: [],
      first_time_customer_only: false,
      redemption_count: 0,
      generated_code_count: 0,
      max_redemptions: null,
    });
  });

  test("[S] 20 HTML in the name or the description is refused", async () => {
    await refuses({ name: "<b>Sale</b>" }, "name", "contains_html");
    await refuses({ description: "<script>" }, "description", "contains_html");
    await refuses({ name: "   " }, "name");
  });
});

describe("kinds and codes", () => {
  test("[S] 443 kind is generated by default, else promo", async () => {
    expect((await create({})).body.kind).toBe("generated");
    expect((await create({ kind: "promo" })).body.kind).toBe("promo");
    await refuses({ kind: "voucher" }, "kind");
  });

  test("[S] 444 a promo has one code: its name, trimmed, in upper case", async () => {
    const { body } = await create({ kind: "promo", name: "  Spring sale " });
    expect(body.codes.map((code: Json) => code.code)).toEqual(["SPRING SALE"]);
    const { data } = await sandbox.ok("GET", `/v1/coupons/${body.id}/codes`);
    expect(data).toEqual(body.codes);
    await refuses({ kind: "promo", codes: { count: 2 } }, "codes");
  });

  test("[A] 445 a promo whose code is in use gives 409 and creates nothing", async () => {
    await create({ kind: "promo", name: "Taken" });
    const again = await create({ kind: "promo", name: " taken" });
    expectRefusal(again, 409, "resource_already_exists", "name");
    const { data } = await sandbox.ok("GET", "/v1/coupons?limit=100&kind=promo");
    expect(data.filter((coupon: Json) => /taken/i.test(coupon.name))).toHaveLength(1);
    const archived = data.find((coupon: Json) => coupon.name === "Taken");
    await sandbox.ok("DELETE", `/v1/coupons/${archived.id}`);
    expectRefusal(await create({ kind: "promo", name: "TAKEN" }), 409, "resource_already_exists");
  });

  test("[S] 446 a generated coupon mints nothing unless asked, then a random batch", async () => {
    const none = await aGenerated(sandbox, 0);
    expect(none.codes).toEqual([]);
    expect((await sandbox.ok("GET", `/v1/coupons/${none.id}/codes`)).data).toEqual([]);
    const some = await aGenerated(sandbox, 7);
    expect(some.generated_code_count).toBe(7);
    expect(new Set(some.codes.map((code: Json) => code.code)).size).toBe(7);
    for (const count of [0, 501, 1.5]) await refuses({ codes: { count } }, "codes.count");
  });

  test("[S] 79 a replay gives the original coupon with the same codes", async () => {
    const body = couponTerms({ codes: { count: 3 } });
    const idempotency = crypto.randomUUID();
    const first = await sandbox.ok("POST", "/v1/coupons", body, { idempotency });
    expect(await sandbox.ok("POST", "/v1/coupons", body, { idempotency })).toEqual(first);
  });
});

describe("[S] 450 stored and enforced:", () => {
  const order = async (code: string, customer?: Json) =>
    orderWith(sandbox, customer ?? (await aCustomer(sandbox)), [product], code);

  test("starts_at", async () => {
    const { code, starts_at } = await aPromo(sandbox, { starts_at: "2026-03-02T12:00:00+00:00" });
    expect(Date.parse(starts_at)).toBe(Date.parse("2026-03-02T12:00:00Z"));
    expectRefusal(await order(code), 400, "coupon_not_started", "coupon_code");
    await sandbox.control("POST", "/clock", { now: "2026-03-02T12:00:00Z" });
    expect((await order(code)).status).toBe(201);
  });

  test("expires_at", async () => {
    const { code } = await aPromo(sandbox, { expires_at: "2026-03-03T00:00:00Z" });
    await sandbox.control("POST", "/clock", { now: "2026-03-02T23:59:59.999Z" });
    expect((await order(code)).status).toBe(201);
    await sandbox.control("POST", "/clock", { now: "2026-03-03T00:00:00Z" });
    expectRefusal(await order(code), 400, "coupon_expired", "coupon_code");
  });

  test("minimum_amount", async () => {
    const below = await aPromo(sandbox, { minimum_amount: 2001 });
    expectRefusal(await order(below.code), 400, "coupon_minimum_not_met", "coupon_code");
    const met = await aPromo(sandbox, { minimum_amount: 2000 });
    expect((await order(met.code)).status).toBe(201);
  });

  test("max_redemptions", async () => {
    const { code } = await aPromo(sandbox, { max_redemptions: 2 });
    expect([(await order(code)).status, (await order(code)).status]).toEqual([201, 201]);
    expectRefusal(await order(code), 400, "coupon_exhausted", "coupon_code");
  });

  test("max_redemptions_per_code", async () => {
    const coupon = await aGenerated(sandbox, 2, { max_redemptions_per_code: 1 });
    const [one, other] = coupon.codes;
    expect((await order(one.code)).status).toBe(201);
    expectRefusal(await order(one.code), 400, "coupon_code_exhausted", "coupon_code");
    expect((await order(other.code)).status).toBe(201);
  });

  test("max_redemptions_per_customer", async () => {
    const { code } = await aPromo(sandbox, { max_redemptions_per_customer: 1 });
    const customer = await aCustomer(sandbox);
    expect((await order(code, customer)).status).toBe(201);
    const again = await order(code, customer);
    expectRefusal(again, 400, "coupon_customer_limit_reached", "coupon_code");
    expect(await ordersOf(sandbox, customer)).toHaveLength(1);
    expect((await order(code)).status).toBe(201);
  });

  test("first_time_customer_only, where a declined order is no purchase", async () => {
    const { code } = await aPromo(sandbox, { first_time_customer_only: true });
    const customer = await aCustomer(sandbox, "card_declined_once");
    expect((await order(code, customer)).body.status).toBe("failed");
    expect((await order(code, customer)).body.status).toBe("succeeded");
    const again = await order(code, customer);
    expectRefusal(again, 400, "coupon_first_time_only", "coupon_code");
  });
});

describe("list and retrieve", () => {
  test("[S] 453 [A] 454 [S] 455 filters by kind, archived and active; archived ones are hidden and retrievable", async () => {
    const own = await startTestSandbox();
    const promo = await aPromo(own);
    const generated = await aGenerated(own, 0);
    const gone = await aGenerated(own, 0);
    await own.ok("DELETE", `/v1/coupons/${gone.id}`);
    await own.ok("PATCH", `/v1/coupons/${promo.id}`, { active: false });
    const ids = async (query: string): Promise<string[]> => {
      const { data } = await own.ok("GET", `/v1/coupons?${query}`);
      return data.map(({ id }: Json) => id).toSorted();
    };
    const some = (...coupons: Json[]): string[] => coupons.map(({ id }) => id as string).toSorted();
    expect(await ids("")).toEqual(some(promo, generated));
    expect(await ids("archived=false")).toEqual(some(promo, generated));
    expect(await ids("archived=true")).toEqual(some(gone));
    expect(await ids("archived=all")).toEqual(some(promo, generated, gone));
    expect(await ids("kind=promo")).toEqual(some(promo));
    expect(await ids("kind=generated&archived=all")).toEqual(some(generated, gone));
    expect(await ids("active=true")).toEqual(some(generated));
    expect(await ids("active=false&archived=all")).toEqual(some(promo, gone));
    expectRefusal(await own.call("GET", "/v1/coupons?archived=maybe"), 400, "invalid_value");
    expect((await own.ok("GET", `/v1/coupons/${gone.id}`)).archived_at).not.toBeNull();
    const unknown = await own.call("GET", `/v1/coupons/${crypto.randomUUID()}`);
    expectRefusal(unknown, 404, "resource_not_found");
    await own.close();
  });
});
