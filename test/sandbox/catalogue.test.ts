import { afterAll, beforeAll, describe, expect, test } from "vitest";

import type { Json, TestSandbox } from "./harness.ts";
import { aCustomer, anOrder, expectRefusal, productsOf, startTestSandbox } from "./harness.ts";

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startTestSandbox();
});
afterAll(() => sandbox.close());

const pricing = { amount: 500, currency: "usd" };

describe("products", () => {
  test("[S] 243 [S] 250 are stored, and changed field by field", async () => {
    const body = {
      name: "Kettle",
      description: "Boils water",
      pricing,
      requires_shipping: true,
      sku: "kettle_1-a",
      stock_status: "preorder",
      metadata: { a: "b" },
    };
    const product = await sandbox.ok("POST", "/v1/products", body);
    expect(product).toMatchObject({ ...body, active: true });
    const changed = await sandbox.ok("PATCH", `/v1/products/${product.id}`, { active: false });
    expect(changed).toEqual({ ...product, active: false, updated_at: changed.updated_at });
  });

  test("[S] 244 [S] 245 [S] 246 SKUs have a form and are unique", async () => {
    for (const sku of ["Kettle", "a b", "a.b", ""]) {
      const called = await sandbox.call("POST", "/v1/products", { name: "x", pricing, sku });
      expectRefusal(called, 400, "invalid_format", "sku");
    }
    await sandbox.ok("POST", "/v1/products", { name: "x", pricing, sku: "taken" });
    const again = await sandbox.call("POST", "/v1/products", { name: "y", pricing, sku: "taken" });
    expectRefusal(again, 409, "sku_already_exists", "sku");
  });

  test("[S] 251 [S] 252 [S] 253 [A] 255 [A] 256 deletion follows use; a price change leaves orders alone", async () => {
    const [planned, ...others] = await productsOf(sandbox);
    const inPlans = (await sandbox.ok("GET", "/v1/plans?limit=100")).data.flatMap((plan: Json) =>
      plan.products.map((product: Json) => product.id),
    );
    const used = [planned, ...others].find((product) => inPlans.includes(product.id));
    expectRefusal(
      await sandbox.call("DELETE", `/v1/products/${used.id}`),
      400,
      "product_in_active_plans",
    );

    const fresh = await sandbox.ok("POST", "/v1/products", { name: "fresh", pricing });
    const path = `/v1/products/${fresh.id}`;
    const customer = await aCustomer(sandbox);
    const items = [{ product_id: fresh.id, quantity: 1 }];
    const order = await anOrder(sandbox, customer, { items });
    await sandbox.ok("PATCH", path, { pricing: { amount: 900, currency: "usd" } });
    expect((await sandbox.ok("GET", `/v1/orders/${order.id}`)).total).toBe(500);
    await sandbox.ok("DELETE", path);
    expect((await sandbox.ok("GET", path)).active).toBe(false);
    const refused = await sandbox.call("POST", "/v1/orders", {
      customer_id: customer.id,
      payment_method_id: customer.default_payment_method_id,
      items,
    });
    expectRefusal(refused, 400, "invalid_value", "items.0.product_id");

    const unused = await sandbox.ok("POST", "/v1/products", { name: "unused", pricing });
    await sandbox.ok("DELETE", `/v1/products/${unused.id}`);
    expectRefusal(
      await sandbox.call("GET", `/v1/products/${unused.id}`),
      404,
      "resource_not_found",
    );
  });
});

describe("plans", () => {
  test("[S] 268 [A] 275 every cadence is there, with and without a setup fee, in two currencies", async () => {
    const { data } = await sandbox.ok("GET", "/v1/plans?limit=100");
    const kinds = new Set(
      data.map((plan: Json) => {
        const { interval, interval_count } = plan.billing_cycle;
        return `${interval}/${interval_count} ${plan.one_time_amount > 0} ${plan.currency}`;
      }),
    );
    expect(kinds.size).toBe(6 * 2 * 2);
    expect(data.every((plan: Json) => plan.billing_cycles === 0)).toBe(true);
  });

  test("[S] 269 [S] 270 [S] 271 [S] 272 search, filter, sort, retrieve", async () => {
    const find = async (query: string): Promise<Json[]> =>
      (await sandbox.ok("GET", `/v1/plans?limit=100&${query}`)).data;
    expect(await find("search=WEEKLY")).toHaveLength(8);
    expect(await find("search=box-annual-usd")).toHaveLength(1);
    expect(await find("active=false")).toEqual([]);
    expect(await find("active=true")).toHaveLength(24);
    for (const field of ["created_at", "updated_at", "name", "amount"]) {
      const up = (await find(`sort=${field}[asc]`)).map((plan) => plan.id);
      const down = (await find(`sort=-${field}`)).map((plan) => plan.id);
      expect(down).toEqual(up.toReversed());
    }
    const amounts = (await find("sort=amount[asc]")).map((plan) => plan.amount);
    expect(amounts).toEqual(amounts.toSorted((a, b) => a - b));
    expectRefusal(await sandbox.call("GET", "/v1/plans?sort=plan_code"), 400, "invalid_value");
    expectRefusal(await sandbox.call("GET", "/v1/plans/box-annual-usd"), 404, "resource_not_found");
  });
});
