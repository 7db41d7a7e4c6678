import { randomUUID } from "node:crypto";
import { beforeAll, expect, test } from "vitest";
import { allEndpoints } from "../../src/parts/sandbox/resources/all-endpoints.ts";
import { appendix } from "./appendix.ts";
import { type Json, aCustomer, aPlan, anOrder, expectRefusal, liveKey } from "./harness.ts";
import { orderBody } from "./support/request-bodies.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();
let customer: Json;
let body: Json;
beforeAll(async () => {
  customer = await aCustomer(sandbox);
  body = await orderBody(sandbox, customer);
});

const counts = async () => (await sandbox.control("GET", "")).counts.test;

test("other endpoints work without the key", async () => {
  const none = { idempotency: null };
  const email = `${randomUUID()}@example.test`;
  const other = await sandbox.ok("POST", "/v1/customers", { email }, none);
  await sandbox.ok("PATCH", `/v1/customers/${other.id}`, { company: "x" }, none);
  await sandbox.ok("DELETE", `/v1/customers/${other.id}`, undefined, none);
  const order = await anOrder(sandbox, customer);
  await sandbox.ok("POST", `/v1/orders/${order.id}/refund`, { amount: 1 }, none);
});

test("keys that are no UUID v4 are refused", async () => {
  for (const idempotency of ["x", "a b", randomUUID() + randomUUID(), "6ba7b810-9dad-11d1-80b4-00c04fd430c8"]) {
    const called = await sandbox.call("POST", "/v1/orders", body, { idempotency });
    expectRefusal(called, 422, "invalid_idempotency_key");
  }
  const empty = { idempotency: null, headers: { "x-svc-idempotency-key": "" } };
  expectRefusal(await sandbox.call("POST", "/v1/orders", body, empty), 422, "invalid_idempotency_key");
});

test("a replay returns the original order, charges nothing and emits nothing", async () => {
  const idempotency = randomUUID();
  const first = await sandbox.ok("POST", "/v1/orders", body, { idempotency });
  await sandbox.ok("POST", `/v1/orders/${first.id}/refund`, {});
  const before = [await counts(), (await sandbox.control("GET", "")).events];
  const again = await sandbox.call("POST", "/v1/orders", body, { idempotency });
  expect(again.status).toBe(201);
  expect(again.body).toEqual(first);
  expect([await counts(), (await sandbox.control("GET", "")).events]).toEqual(before);
});

test("a replay of a declined order is the same failed order, again 201", async () => {
  const poor = await aCustomer(sandbox, "card_insufficient_funds");
  const declined = {
    ...body,
    customer_id: poor.id,
    payment_method_id: poor.default_payment_method_id,
  };
  const idempotency = randomUUID();
  const first = await sandbox.call("POST", "/v1/orders", declined, { idempotency });
  const again = await sandbox.call("POST", "/v1/orders", declined, { idempotency });
  expect([first.status, again.status]).toEqual([201, 201]);
  expect(again.body).toEqual(first.body);
  const { data } = await sandbox.ok("GET", `/v1/transactions?order_id=${first.body.id}`);
  expect(data).toHaveLength(1);
});

test("another payload conflicts; key order and white space do not matter", async () => {
  const idempotency = randomUUID();
  const first = await sandbox.ok("POST", "/v1/orders", body, { idempotency });
  const { items, ...rest } = body;
  const raw = JSON.stringify({ items, ...rest }, null, 4);
  const same = await sandbox.ok("POST", "/v1/orders", undefined, { idempotency, raw });
  expect(same.id).toBe(first.id);
  const other = { ...body, description: "other" };
  const called = await sandbox.call("POST", "/v1/orders", other, { idempotency });
  expectRefusal(called, 409, "idempotency_key_conflict");
  expect(called.body.error.type).toBe("idempotency_error");
});

test("refunds and retries are made once a key", async () => {
  const order = await anOrder(sandbox, customer);
  const refundKey = { idempotency: randomUUID() };
  const path = `/v1/orders/${order.id}/refund`;
  const first = await sandbox.ok("POST", path, { amount: 10 }, refundKey);
  expect(await sandbox.ok("POST", path, { amount: 10 }, refundKey)).toEqual(first);

  const poor = await aCustomer(sandbox, "card_insufficient_funds");
  const failed = await anOrder(sandbox, poor);
  const retry = `/v1/orders/${failed.id}/retry`;
  const retryKey = { idempotency: randomUUID() };
  expect((await sandbox.ok("POST", retry, undefined, retryKey)).transactions).toHaveLength(2);
  expect((await sandbox.ok("POST", retry, undefined, retryKey)).transactions).toHaveLength(2);
  expect((await sandbox.ok("POST", retry)).transactions).toHaveLength(3);
});

test("after 24 hours of the sandbox's clock a key is new", async () => {
  const idempotency = randomUUID();
  const first = await sandbox.ok("POST", "/v1/orders", body, { idempotency });
  await sandbox.control("POST", "/clock", { advance_seconds: 86_390 });
  const within = await sandbox.ok("POST", "/v1/orders", body, { idempotency });
  expect(within.id).toBe(first.id);
  await sandbox.control("POST", "/clock", { advance_seconds: 20 });
  const after = await sandbox.ok("POST", "/v1/orders", body, { idempotency });
  expect(after.id).not.toBe(first.id);
});

test("concurrent identical requests create one object", async () => {
  const idempotency = randomUUID();
  const before = await counts();
  const calls = await Promise.all(
    Array.from({ length: 8 }, () => sandbox.call("POST", "/v1/orders", body, { idempotency })),
  );
  const created = calls.filter(({ status }) => status === 201).map((call) => call.body.id);
  expect(new Set(created).size).toBe(1);
  expect((await counts()).orders).toBe(before.orders + 1);
});

test("a refused request does not burn its key", async () => {
  const idempotency = randomUUID();
  const called = await sandbox.call("POST", "/v1/orders", { ...body, items: [] }, { idempotency });
  expect(called.status).toBe(400);
  await sandbox.ok("POST", "/v1/orders", body, { idempotency });
});

test("a key counts for its endpoint alone, and the header's name in any case", async () => {
  const key = randomUUID();
  const headers = { "X-Svc-IDEMPOTENCY-Key": key };
  const options = { idempotency: null, headers };
  await sandbox.ok("POST", "/v1/orders", body, options);
  const product = { name: "x", pricing: { amount: 1, currency: "usd" } };
  await sandbox.ok("POST", "/v1/products", product, options);
});

test.each(allEndpoints.filter(({ endpoint }) => endpoint.idempotency === "required").map(({ endpoint }) => endpoint))(
  "$method $path without the required key changes nothing",
  async ({ method, path }) => {
    const before = await counts();
    const at = `/v1${path.replaceAll(/\{\w+\}/g, customer.id)}`;
    const called = await sandbox.call(method, at, body, { idempotency: null });
    expectRefusal(called, 422, "missing_idempotency_key");
    expect(called.body.error.type).toBe("idempotency_error");
    expect(await counts()).toEqual(before);
  },
);

test("each endpoint treats the header as the interface's table says", () => {
  const words: Readonly<Record<string, readonly string[]>> = {
    "-": ["none"],
    required: ["required"],
    "required, 24 h replay": ["required"],
    sent: ["sent"],
    recommended: ["recommended"],
    optional: ["optional"],
    none: ["none"],
    "501": ["none"],
    "not mentioned": ["sent", "none"],
    "not shown (examples send it)": ["sent"],
  };
  for (const { endpoint, header } of appendix) {
    const declared = allEndpoints.find((known) => `${known.endpoint.method} ${known.endpoint.path}` === endpoint);
    expect(words[header], `${endpoint}: ${header}`).toContain(declared?.endpoint.idempotency);
  }
});

test("a repeat finds the first request under way, and its answer when it is done", async () => {
  await sandbox.control("PUT", "/faults", { api: { slow: { rate: 1, max_ms: 300 } } });
  const idempotency = randomUUID();
  const first = sandbox.call("POST", "/v1/orders", body, { idempotency });
  let second = await sandbox.call("POST", "/v1/orders", body, { idempotency });
  const others: string[] = [];
  while (second.status !== 201) {
    others.push(second.body.error.code);
    second = await sandbox.call("POST", "/v1/orders", body, { idempotency });
  }
  await sandbox.control("PUT", "/faults", {});
  expect((await first).body.id).toBe(second.body.id);
  expect(new Set(others)).toEqual(new Set(["request_in_progress"]));
});

test("a replay of a subscription charges nothing again", async () => {
  const plan = await aPlan(sandbox, "box-monthly-usd");
  const wish = {
    customer_id: customer.id,
    plan_id: plan.id,
    payment_method_id: customer.default_payment_method_id,
    billing_cycle: { interval: "month", interval_count: 1 },
  };
  const idempotency = randomUUID();
  const first = await sandbox.ok("POST", "/v1/subscriptions", wish, { idempotency });
  const before = await counts();
  expect(await sandbox.ok("POST", "/v1/subscriptions", wish, { idempotency })).toEqual(first);
  expect(await counts()).toEqual(before);
});

test("replays of coupons and of their codes give the same coupon and the same codes", async () => {
  const coupon = { name: "Ten", percentage: 10, duration: "once" };
  const idempotency = randomUUID();
  const first = await sandbox.ok("POST", "/v1/coupons", coupon, { idempotency });
  expect(await sandbox.ok("POST", "/v1/coupons", coupon, { idempotency })).toEqual(first);
  const minting = { idempotency: randomUUID() };
  const path = `/v1/coupons/${first.id}/codes`;
  const batch = await sandbox.ok("POST", path, { count: 20 }, minting);
  expect(await sandbox.ok("POST", path, { count: 20 }, minting)).toEqual(batch);
});

test("the other environment has its own keys", async () => {
  const idempotency = randomUUID();
  const product = { name: "x", pricing: { amount: 1, currency: "usd" } };
  const first = await sandbox.ok("POST", "/v1/products", product, { idempotency });
  const live = await sandbox.ok("POST", "/v1/products", product, { idempotency, key: liveKey });
  expect(live.id).not.toBe(first.id);
});

test("a replay bears no mark", async () => {
  const idempotency = randomUUID();
  const names = async () =>
    [...(await sandbox.call("POST", "/v1/orders", body, { idempotency })).headers.keys()].sort();
  expect(await names()).toEqual(await names());
});
