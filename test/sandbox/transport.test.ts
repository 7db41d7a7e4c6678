import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { testKey } from "../../src/sandbox/keys.ts";
import type { TestSandbox } from "./harness.ts";
import { aCustomer, anOrder, expectRefusal, liveKey, startTestSandbox } from "./harness.ts";

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startTestSandbox();
});
afterAll(() => sandbox.close());

const unknownId = "00000000-0000-4000-8000-000000000000";

describe("transport and format", () => {
  test("[S] 1 paths answer under /v1 only", async () => {
    expectRefusal(await sandbox.call("GET", "/orders"), 404, "resource_not_found");
    expect((await sandbox.call("GET", "/v1/orders")).status).toBe(200);
  });

  test("[A] 3 [A] 4 [A] 5 bodies that are no JSON object are refused", async () => {
    for (const raw of ["{", "[]", '"text"', "null", "3", "{}x", "\u0000"]) {
      const called = await sandbox.call("POST", "/v1/customers", undefined, { raw });
      expectRefusal(called, 400, "validation_error");
    }
    const headers = { "content-type": "text/plain" };
    const typed = await sandbox.call("POST", "/v1/customers", { email: "a@b.test" }, { headers });
    expectRefusal(typed, 400, "validation_error");
  });

  test("[A] 6 [A] 7 unknown paths and methods are 404 in the envelope", async () => {
    const orders: [string, string][] = [
      ["GET", "/v1/nothing"],
      ["PATCH", `/v1/orders/${unknownId}`],
      ["DELETE", `/v1/orders/${unknownId}`],
      ["POST", "/v1/plans"],
      ["POST", "/v1/transactions"],
    ];
    for (const [method, path] of orders) {
      expectRefusal(
        await sandbox.call(method, path, method === "GET" ? undefined : {}),
        404,
        "resource_not_found",
      );
    }
  });

  test("[A] 9 [S] 8 money that is no whole number of cents is refused by name", async () => {
    for (const amount of [1.5, "100", -1, 2 ** 53, null, true]) {
      const body = { name: "x", pricing: { amount, currency: "usd" } };
      const called = await sandbox.call("POST", "/v1/products", body);
      expectRefusal(called, 400, "invalid_value", "pricing.amount");
    }
  });

  test("[A] 11 an upper-case currency is refused", async () => {
    const body = { name: "x", pricing: { amount: 1, currency: "USD" } };
    const called = await sandbox.call("POST", "/v1/products", body);
    expectRefusal(called, 400, "invalid_format", "pricing.currency");
  });

  test("[A] 14 [S] 52 unknown and malformed ids are 404", async () => {
    for (const id of [unknownId, "nonsense", "%00", "__proto__"]) {
      for (const path of ["customers", "products", "plans", "orders", "subscriptions"]) {
        const called = await sandbox.call("GET", `/v1/${path}/${id}`);
        expectRefusal(called, 404, "resource_not_found");
      }
    }
  });

  test("[A] 17 HEAD and OPTIONS change nothing", async () => {
    const before = (await sandbox.control("GET", "")).counts;
    const headers = { authorization: `Bearer ${testKey}` };
    for (const method of ["HEAD", "OPTIONS"]) {
      await fetch(`${sandbox.url}/v1/customers`, { method, headers });
    }
    expect((await sandbox.control("GET", "")).counts).toEqual(before);
  });

  test("[S] 20 [A] 21 HTML in free text is refused, a lone < is not", async () => {
    const email = "html@example.test";
    const html = { email, first_name: "<b>x</b>" };
    expectRefusal(
      await sandbox.call("POST", "/v1/customers", html),
      400,
      "contains_html",
      "first_name",
    );
    const inMetadata = { email, metadata: { note: "<script>" } };
    expectRefusal(await sandbox.call("POST", "/v1/customers", inMetadata), 400, "contains_html");
    await sandbox.ok("POST", "/v1/customers", { email, first_name: "a < b & c" });
  });

  test("[A] 22 oversized, deep and hostile bodies are 4xx and change nothing", async () => {
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

  test("[S] 12 the Date header is that of the sandbox's clock", async () => {
    await sandbox.control("POST", "/clock", { advance_seconds: 86_400 });
    const { headers } = await sandbox.call("GET", "/v1/orders");
    const { now } = (await sandbox.control("GET", "")).clock;
    expect(Math.abs(Date.parse(headers.get("date") ?? "") - Date.parse(now))).toBeLessThan(2000);
    expect(Date.parse(now) - Date.now()).toBeGreaterThan(86_000_000);
  });
});

describe("authentication", () => {
  test("[S] 23 [S] 24 [S] 25 a request needs a key of the right form that exists", async () => {
    const path = "/v1/orders";
    expectRefusal(
      await sandbox.call("GET", path, undefined, { key: null }),
      401,
      "missing_api_key",
    );
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

  test("[S] 26 [S] 27 [S] 32 [S] 33 expired, revoked, restricted keys and foreign addresses are refused", async () => {
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

  test("[A] 39 [A] 40 a bad key comes before a bad body, a missing permission before existence", async () => {
    const bad = { key: "svc_test_sk_unknown", raw: "{" };
    expectRefusal(await sandbox.call("POST", "/v1/orders", undefined, bad), 401, "invalid_api_key");
    const { key } = await sandbox.control("POST", "/keys", { mode: "test", permissions: [] });
    const called = await sandbox.call("GET", `/v1/orders/${unknownId}`, undefined, { key });
    expectRefusal(called, 403, "insufficient_permissions");
  });

  test("[A] 29 [S] 30 test and live objects are apart", async () => {
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

  test("[S] 31 test cards are not honoured with a live key", async () => {
    const body = { email: "live@example.test", svc_gateway_customer_vault_id: "card_visa" };
    const called = await sandbox.call("POST", "/v1/customers", body, { key: liveKey });
    expectRefusal(called, 400, "invalid_value", "svc_gateway_customer_vault_id");
  });
});

describe("errors", () => {
  test("[A] 48 [A] 49 one missing field has its own code, several give validation_error with all of them", async () => {
    const one = await sandbox.call("POST", "/v1/customers", {});
    expectRefusal(one, 400, "required_field", "email");
    expect(one.body.error.field_errors).toHaveLength(1);
    const several = await sandbox.call("POST", "/v1/orders", { items: [] });
    expectRefusal(several, 400, "validation_error");
    const fields = several.body.error.field_errors.map((error: { field: string }) => error.field);
    expect(fields.sort()).toEqual(["customer_id", "items", "payment_method_id"]);
  });

  test("[A] 50 a wrong enum value and a malformed value have different codes", async () => {
    const stock = { name: "x", pricing: { amount: 1, currency: "usd" }, stock_status: "gone" };
    expectRefusal(
      await sandbox.call("POST", "/v1/products", stock),
      400,
      "invalid_value",
      "stock_status",
    );
    const email = await sandbox.call("POST", "/v1/customers", { email: "not an address" });
    expectRefusal(email, 400, "invalid_format", "email");
  });

  test("[S] 101 [S] 104 [S] 105 SVC-Version must be a published version that is not retired", async () => {
    const get = (version: string) =>
      sandbox.call("GET", "/v1/orders", undefined, { headers: { "svc-version": version } });
    expect((await get("2025-09-01")).status).toBe(200);
    expectRefusal(await get("2025-09-02"), 400, "invalid_api_version");
    expectRefusal(await get("latest"), 400, "invalid_api_version");
    expectRefusal(await get("2024-03-01"), 400, "api_version_sunset");
  });
});

describe("controls", () => {
  test("[A] 538 take no API key", async () => {
    const headers = { authorization: `Bearer ${testKey}` };
    const response = await fetch(`${sandbox.url}/_sandbox`, { headers });
    expect(response.status).toBe(403);
  });

  test("[A] 521 there is no event list on /v1", async () => {
    expectRefusal(await sandbox.call("GET", "/v1/events"), 404, "resource_not_found");
  });
});
