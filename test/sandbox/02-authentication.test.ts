import { expect, test } from "vitest";
import { testKey } from "../../src/parts/sandbox/engine/keys.ts";
import { allEndpoints } from "../../src/parts/sandbox/resources/all-endpoints.ts";
import type { Endpoint } from "../../src/core/contract/endpoint.ts";
import { type Json, aCustomer, anOrder, expectRefusal, liveKey } from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();

const unknownId = "00000000-0000-4000-8000-000000000000";

test("a request needs a key of the right form that exists", async () => {
  const path = "/v1/orders";
  expectRefusal(await sandbox.call("GET", path, undefined, { key: null }), 401, "missing_api_key");
  for (const key of ["nonsense", "svc_pk_test_x", "svc_test_sk_", "sk_test_x y"]) {
    const called = await sandbox.call("GET", path, undefined, { key });
    expectRefusal(called, 401, "invalid_api_key_format");
  }
  const basic = { key: null, headers: { authorization: `Basic ${testKey}` } };
  expectRefusal(await sandbox.call("GET", path, undefined, basic), 401, "invalid_api_key_format");
  const unknown = await sandbox.call("GET", path, undefined, { key: "svc_test_sk_unknown" });
  expectRefusal(unknown, 401, "invalid_api_key");
  expect(JSON.stringify(unknown.body)).not.toContain("svc_test_sk_unknown");
});

test("expired, revoked, restricted keys and foreign addresses are refused", async () => {
  const cases: [object, number, string][] = [
    [{ mode: "test", expires_at: "2020-01-01T00:00:00Z" }, 401, "expired_api_key"],
    [{ mode: "test", revoked: true }, 401, "revoked_api_key"],
    [{ mode: "test", allow: ["203.0.113.9"] }, 403, "ip_not_allowed"],
    [{ mode: "test", permissions: ["orders:write"] }, 403, "insufficient_permissions"],
  ];
  for (const [wish, status, code] of cases) {
    const { key } = await sandbox.control("POST", "/keys", wish);
    expectRefusal(await sandbox.call("GET", "/v1/orders", undefined, { key }), status, code);
  }
  const reading = { mode: "test", permissions: ["orders:read"], allow: ["127.0.0.1"] };
  const { key } = await sandbox.control("POST", "/keys", reading);
  await sandbox.ok("GET", "/v1/orders", undefined, { key });
});

test("a bad key comes before a bad body, a missing permission before existence", async () => {
  const bad = { key: "svc_test_sk_unknown", raw: "{" };
  expectRefusal(await sandbox.call("POST", "/v1/orders", undefined, bad), 401, "invalid_api_key");
  const { key } = await sandbox.control("POST", "/keys", { mode: "test", permissions: [] });
  const called = await sandbox.call("GET", `/v1/orders/${unknownId}`, undefined, { key });
  expectRefusal(called, 403, "insufficient_permissions");
});

test("test and live objects are apart", async () => {
  const customer = await aCustomer(sandbox);
  const order = await anOrder(sandbox, customer);
  const live = { key: liveKey };
  expect((await sandbox.ok("GET", "/v1/orders", undefined, live)).data).toEqual([]);
  for (const path of [`/v1/orders/${order.id}`, `/v1/customers/${customer.id}`]) {
    expectRefusal(await sandbox.call("GET", path, undefined, live), 403, "environment_mismatch");
  }
  const change = await sandbox.call("PATCH", `/v1/customers/${customer.id}`, {}, live);
  expectRefusal(change, 403, "environment_mismatch");
});

test("test cards are not honoured with a live key", async () => {
  const body = { email: "live@example.test", svc_gateway_customer_vault_id: "card_visa" };
  const called = await sandbox.call("POST", "/v1/customers", body, { key: liveKey });
  expectRefusal(called, 400, "invalid_value", "svc_gateway_customer_vault_id");
});

const path = ({ path: declared }: Endpoint) => `/v1${declared.replaceAll(/\{\w+\}/g, unknownId)}`;
const each = allEndpoints.map(({ endpoint }) => ({
  endpoint,
  name: `${endpoint.method} ${endpoint.path}`,
}));

test.each(each)("$name answers 401 without a key", async ({ endpoint }) => {
  const called = await sandbox.call(endpoint.method, path(endpoint), undefined, { key: null });
  expectRefusal(called, 401, "missing_api_key");
});

test("every endpoint needs its own permission, and no other one does", async () => {
  for (const { endpoint } of allEndpoints) {
    const others = [...new Set(allEndpoints.map((other) => other.endpoint.permission))].filter(
      (permission) => permission !== endpoint.permission,
    );
    const { key } = await sandbox.control("POST", "/keys", { mode: "test", permissions: others });
    const called = await sandbox.call(endpoint.method, path(endpoint), endpoint.method === "GET" ? undefined : {}, {
      key,
    });
    expectRefusal(called, 403, "insufficient_permissions");
    expect(called.body.error.type).toBe("authorization_error");
  }
});

test("a key keeps the permissions that it was made with", async () => {
  const permissions = ["orders:read"];
  const { key } = await sandbox.control("POST", "/keys", { mode: "test", permissions });
  await sandbox.ok("GET", "/v1/orders", undefined, { key });
  expectRefusal(await sandbox.call("GET", "/v1/coupons", undefined, { key }), 403, "insufficient_permissions");
});

test("both kinds of key work on the same address, each in its own environment", async () => {
  for (const key of [testKey, liveKey]) {
    const { data } = await sandbox.ok("GET", "/v1/products", undefined, { key });
    expect(data.length).toBeGreaterThan(0);
  }
});

test("a key expires by the sandbox's clock", async () => {
  const { now } = (await sandbox.control("GET", "")).clock;
  const expires_at = new Date(Date.parse(now) + 60_000).toISOString();
  const { key } = await sandbox.control("POST", "/keys", { mode: "test", expires_at });
  await sandbox.ok("GET", "/v1/orders", undefined, { key });
  await sandbox.control("POST", "/clock", { advance_seconds: 61 });
  expectRefusal(await sandbox.call("GET", "/v1/orders", undefined, { key }), 401, "expired_api_key");
});

test("an allowlist takes addresses and ranges, and nothing else", async () => {
  const keyFor = async (allow: string[]) =>
    (await sandbox.control("POST", "/keys", { mode: "test", allow })).key as string;
  const inside = await keyFor(["10.0.0.0/8", "127.0.0.0/8"]);
  await sandbox.ok("GET", "/v1/orders", undefined, { key: inside });
  const outside = await keyFor(["10.0.0.0/8", "::1"]);
  const called = await sandbox.call("GET", "/v1/orders", undefined, { key: outside });
  expectRefusal(called, 403, "ip_not_allowed");
  const bad = await sandbox.tryControl("POST", "/keys", { mode: "test", allow: ["anywhere"] });
  expect(bad.status).toBe(400);
});

test("publishable keys are refused", async () => {
  const called = await sandbox.call("GET", "/v1/orders", undefined, { key: "svc_test_pk_sandbox" });
  expectRefusal(called, 401, "invalid_api_key_format");
});

test("no answer repeats the key", async () => {
  for (const [method, at] of [
    ["GET", "/v1/nothing"],
    ["POST", "/v1/orders"],
  ] as const) {
    const { body } = await sandbox.call(method, at, method === "GET" ? undefined : { note: 1 });
    expect(JSON.stringify(body)).not.toContain(testKey);
  }
});

test("two merchants do not see each other's objects", async () => {
  const other = await sandbox.control("POST", "/merchants", { name: "Other" });
  const options = { key: other.keys.test };
  const customer = await aCustomer(sandbox);
  const order = await anOrder(sandbox, customer);
  for (const at of [`/v1/customers/${customer.id}`, `/v1/orders/${order.id}`]) {
    expectRefusal(await sandbox.call("GET", at, undefined, options), 404, "resource_not_found");
  }
  expect((await sandbox.ok("GET", "/v1/orders", undefined, options)).data).toEqual([]);
  await sandbox.ok("POST", "/v1/customers", { email: customer.email }, options);
  const pricing = { amount: 1, currency: "usd" };
  for (const each of [{}, options]) {
    await sandbox.ok("POST", "/v1/products", { name: "x", pricing, sku: "same-sku" }, each);
  }
  const theirs = (await sandbox.ok("GET", "/v1/roles", undefined, options)).data[0];
  const ours = (await sandbox.ok("GET", "/v1/roles")).data;
  expect(ours.map((role: Json) => role.id)).not.toContain(theirs.id);
});
