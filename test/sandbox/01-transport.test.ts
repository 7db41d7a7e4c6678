import { expect, test } from "vitest";
import { testKey } from "../../src/parts/sandbox/engine/keys.ts";
import { expectRefusal } from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();

const unknownId = "00000000-0000-4000-8000-000000000000";

test("paths answer under /v1 only", async () => {
  expectRefusal(await sandbox.call("GET", "/orders"), 404, "resource_not_found");
  expect((await sandbox.call("GET", "/v1/orders")).status).toBe(200);
  expectRefusal(await sandbox.call("GET", "/v1/Orders"), 404, "resource_not_found");
});

test("bodies that are no JSON object are refused", async () => {
  for (const raw of ["{", "[]", '"text"', "null", "3", "{}x", "\u0000"]) {
    const called = await sandbox.call("POST", "/v1/customers", undefined, { raw });
    expectRefusal(called, 400, "validation_error");
  }
  const headers = { "content-type": "text/plain" };
  const typed = await sandbox.call("POST", "/v1/customers", { email: "a@b.test" }, { headers });
  expectRefusal(typed, 400, "validation_error");
});

test("unknown paths and methods are 404 in the envelope", async () => {
  const orders: [string, string][] = [
    ["GET", "/v1/nothing"],
    ["PATCH", `/v1/orders/${unknownId}`],
    ["DELETE", `/v1/orders/${unknownId}`],
    ["POST", "/v1/plans"],
    ["POST", "/v1/transactions"],
  ];
  for (const [method, path] of orders) {
    expectRefusal(await sandbox.call(method, path, method === "GET" ? undefined : {}), 404, "resource_not_found");
  }
});

test("money that is no whole number of cents is refused by name", async () => {
  for (const amount of [1.5, "100", -1, 2 ** 53, 1e21, null, true]) {
    const body = { name: "x", pricing: { amount, currency: "usd" } };
    const called = await sandbox.call("POST", "/v1/products", body);
    expectRefusal(called, 400, "invalid_value", "pricing.amount");
  }
});

test("an upper-case currency is refused", async () => {
  const body = { name: "x", pricing: { amount: 1, currency: "USD" } };
  const called = await sandbox.call("POST", "/v1/products", body);
  expectRefusal(called, 400, "invalid_format", "pricing.currency");
});

test("unknown and malformed ids are 404", async () => {
  for (const id of [unknownId, "nonsense", "%00", "__proto__"]) {
    for (const path of ["customers", "products", "plans", "orders", "subscriptions"]) {
      const called = await sandbox.call("GET", `/v1/${path}/${id}`);
      expectRefusal(called, 404, "resource_not_found");
    }
  }
});

test("HEAD and OPTIONS change nothing", async () => {
  const before = (await sandbox.control("GET", "")).counts;
  const headers = { authorization: `Bearer ${testKey}` };
  for (const method of ["HEAD", "OPTIONS"]) {
    await fetch(`${sandbox.url}/v1/customers`, { method, headers });
  }
  expect((await sandbox.control("GET", "")).counts).toEqual(before);
});

test("HTML in free text is refused, a lone < is not", async () => {
  const email = "html@example.test";
  const html = { email, first_name: "<b>x</b>" };
  expectRefusal(await sandbox.call("POST", "/v1/customers", html), 400, "contains_html", "first_name");
  const inMetadata = { email, metadata: { note: "<script>" } };
  expectRefusal(await sandbox.call("POST", "/v1/customers", inMetadata), 400, "contains_html");
  // A page shows a tag without an end as one.
  const open = { email, first_name: "<img src=x onerror=alert(1)" };
  expectRefusal(await sandbox.call("POST", "/v1/customers", open), 400, "contains_html");
  await sandbox.ok("POST", "/v1/customers", { email, first_name: "a < b & c<d" });
});

test("oversized, deep and hostile bodies are 4xx and change nothing", async () => {
  const before = (await sandbox.control("GET", "")).counts;
  const deep = `{"email":"deep@example.test","metadata":${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}}`;
  const bodies = [
    deep,
    JSON.stringify({ email: "big@example.test", metadata: { a: "x".repeat(2 ** 20) } }),
    JSON.stringify({ email: "big@example.test", company: "x".repeat(501) }),
    '{"email":"proto@example.test","metadata":{"__proto__":{"a":"<b>x</b>"}}}',
    '{"email":{"$gt":""}}',
  ];
  for (const raw of bodies) {
    const { status } = await sandbox.call("POST", "/v1/customers", undefined, { raw });
    expect(status).toBe(400);
  }
  expect((await sandbox.control("GET", "")).counts).toEqual(before);
});

test("the Date header is that of the sandbox's clock", async () => {
  await sandbox.control("POST", "/clock", { advance_seconds: 86_400 });
  const { headers } = await sandbox.call("GET", "/v1/orders");
  const { now } = (await sandbox.control("GET", "")).clock;
  expect(Math.abs(Date.parse(headers.get("date") ?? "") - Date.parse(now))).toBeLessThan(2000);
  expect(Date.parse(now) - Date.now()).toBeGreaterThan(86_000_000);
});

test("bodies are JSON both ways, also in errors", async () => {
  const raw = '{"email":"json@example.test"}';
  const headers = { "content-type": "application/json; charset=utf-8" };
  const created = await sandbox.call("POST", "/v1/customers", undefined, { raw, headers });
  expect(created.status).toBe(201);
  const refused = await sandbox.call("GET", "/v1/nothing");
  expect(refused.headers.get("content-type")).toContain("application/json");
});

test("currencies come back as three lower-case letters", async () => {
  const { data } = await sandbox.ok("GET", "/v1/plans?limit=100");
  expect(data.length).toBeGreaterThan(0);
  for (const { currency } of data) expect(currency).toMatch(/^[a-z]{3}$/);
});

test("money is whole, times are ISO 8601 and ids are UUIDs, wherever they stand", async () => {
  await sandbox.control("POST", "/traffic", { orders: 40, subscriptions: 5, seed: 1 });
  const snapshot = await sandbox.control("GET", "/snapshot");
  let looked = 0;
  const look = (value: unknown, name: string): void => {
    if (typeof value === "object" && value !== null) {
      for (const [inner, content] of Object.entries(value)) {
        if (inner !== "metadata") look(content, Array.isArray(value) ? name : inner);
      }
      return;
    }
    if (value === null) return;
    looked += 1;
    if (/(^|_)(amount|total|subtotal|price)$/.test(name)) expect(value).toBeTypeOf("number");
    if (typeof value === "number" && name !== "percentage") expect(Number.isSafeInteger(value)).toBe(true);
    if (/_at$|^start_date$|_period_(start|end)$/.test(name)) {
      expect(new Date(String(value)).toISOString()).toBe(value);
    }
    if (/^(id|customer_id|order_id|product_id|subscription_id)$/.test(name)) {
      expect(value).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    }
  };
  for (const section of ["orders", "transactions", "subscriptions", "customers", "plans", "products"]) {
    look(snapshot[section], section);
  }
  expect(looked).toBeGreaterThan(1000);
});

test("every answer has its own request id, which errors repeat", async () => {
  const first = await sandbox.call("GET", "/v1/orders");
  const second = await sandbox.call("GET", "/v1/nothing");
  expect(first.headers.get("x-request-id")).toMatch(/^req_/);
  expect(second.body.error.request_id).not.toBe(first.headers.get("x-request-id"));
});

test("unknown parameters and fields are ignored, on every list alike", async () => {
  for (const list of ["customers", "products", "plans", "orders", "subscriptions", "transactions"]) {
    expect((await sandbox.call("GET", `/v1/${list}?surprise=1&limit=1`)).status).toBe(200);
  }
  const body = { email: "unknown-field@example.test", surprise: { a: 1 } };
  expect(await sandbox.ok("POST", "/v1/customers", body)).not.toHaveProperty("surprise");
});
