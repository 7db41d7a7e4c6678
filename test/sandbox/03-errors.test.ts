import { expect, test } from "vitest";
import { testKey } from "../../src/parts/sandbox/engine/keys.ts";
import { allEndpoints } from "../../src/parts/sandbox/resources/all-endpoints.ts";
import {
  type Json,
  aCustomer,
  aPlan,
  aSubscription,
  anOrder,
  expectRefusal,
  register,
  startReceiver,
} from "./harness.ts";
import { orderBody } from "./support/request-bodies.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();

test("one missing field has its own code, several give validation_error with all of them", async () => {
  const one = await sandbox.call("POST", "/v1/customers", {});
  expectRefusal(one, 400, "required_field", "email");
  expect(one.body.error.field_errors).toHaveLength(1);
  const several = await sandbox.call("POST", "/v1/orders", { items: [] });
  expectRefusal(several, 400, "validation_error");
  const fields = several.body.error.field_errors.map((error: { field: string }) => error.field);
  expect(fields.sort()).toEqual(["customer_id", "items", "payment_method_id"]);
});

test("a wrong enum value and a malformed value have different codes", async () => {
  const stock = { name: "x", pricing: { amount: 1, currency: "usd" }, stock_status: "gone" };
  expectRefusal(await sandbox.call("POST", "/v1/products", stock), 400, "invalid_value", "stock_status");
  const email = await sandbox.call("POST", "/v1/customers", { email: "not an address" });
  expectRefusal(email, 400, "invalid_format", "email");
});

const unknownId = "00000000-0000-4000-8000-000000000000";
const withId = allEndpoints
  .map(({ endpoint }) => endpoint)
  .filter(({ path }) => path.includes("{"))
  .map((endpoint) => ({ endpoint, name: `${endpoint.method} ${endpoint.path}` }));

/** Bodies that are right but for the object that they are about. */
const bodies: Readonly<Record<string, object>> = {
  addPaymentMethod: { billing_id: "card_visa" },
  reorderProductImages: { image_ids: [] },
  archiveCoupon: { archived: true },
  createCouponCodes: { count: 1 },
  mintCouponCodes: { count: 1 },
};

test.each(withId)("$name of an unknown id is 404", async ({ endpoint }) => {
  const path = `/v1${endpoint.path.replaceAll(/\{\w+\}/g, unknownId)}`;
  const body = endpoint.method === "GET" ? undefined : (bodies[endpoint.name] ?? {});
  expectRefusal(await sandbox.call(endpoint.method, path, body), 404, "resource_not_found");
});

test("a fault can force every code on any endpoint, in the envelope with its status", async () => {
  const expected: Record<string, [number, string]> = {
    validation_error: [400, "invalid_request_error"],
    resource_not_found: [404, "invalid_request_error"],
    field_locked: [422, "invalid_request_error"],
    revoked_api_key: [401, "authentication_error"],
    ip_not_allowed: [403, "authorization_error"],
    request_in_progress: [409, "idempotency_error"],
    missing_idempotency_key: [422, "idempotency_error"],
    rate_limit_exceeded: [429, "rate_limit_error"],
    internal_error: [500, "processing_error"],
    service_unavailable: [503, "processing_error"],
    gateway_error: [502, "processing_error"],
    not_implemented: [501, "processing_error"],
    webhook_delivery_failed: [502, "webhook_error"],
  };
  for (const [code, [status, type]] of Object.entries(expected)) {
    const force = [{ endpoint: "GET /plans", code, param: "p", times: 1 }];
    await sandbox.control("PUT", "/faults", { api: { force } });
    await sandbox.ok("GET", "/v1/products");
    const called = await sandbox.call("GET", "/v1/plans");
    expectRefusal(called, status, code, "p");
    expect(called.body.error.type).toBe(type);
    await sandbox.ok("GET", "/v1/plans");
  }
  const unknown = await sandbox.tryControl("PUT", "/faults", {
    api: { force: [{ code: "nonsense" }] },
  });
  expect(unknown.status).toBe(400);
});

test("the parameter most responsible is named, or null", async () => {
  const called = await sandbox.call("POST", "/v1/customers", { email: 3 });
  expectRefusal(called, 400, "invalid_value", "email");
  expect((await sandbox.call("GET", "/v1/nothing")).body.error.param).toBeNull();
});

test("duplicates have their own codes", async () => {
  const phone = "+15550001111";
  await sandbox.ok("POST", "/v1/customers", { email: "dup@example.test", phone });
  const email = await sandbox.call("POST", "/v1/customers", { email: "DUP@example.test" });
  expectRefusal(email, 409, "email_already_exists", "email");
  const other = await sandbox.call("POST", "/v1/customers", { email: "other@example.test", phone });
  expectRefusal(other, 409, "phone_already_exists", "phone");
});

test("what the service does not implement is 501", async () => {
  const subscription = await aSubscription(sandbox, await aCustomer(sandbox));
  for (const action of ["pause", "resume"]) {
    const called = await sandbox.call("POST", `/v1/subscriptions/${subscription.id}/${action}`);
    expectRefusal(called, 501, "not_implemented");
  }
});

const orderFor = (customer: Json) => orderBody(sandbox, customer);
const salesOf = async (customer: Json): Promise<Json[]> =>
  (await sandbox.ok("GET", `/v1/transactions?customer_id=${customer.id}`)).data;

test.each(["gateway_error", "internal_error"])(
  "after %s, before or after the charge, a repeat with the same key leaves one charge",
  async (code) => {
    for (const when of ["before", "after"]) {
      const customer = await aCustomer(sandbox);
      const body = await orderFor(customer);
      const force = [{ endpoint: "POST /orders", code, when, times: 1 }];
      await sandbox.control("PUT", "/faults", { api: { force } });
      const options = { idempotency: crypto.randomUUID() };
      const lost = await sandbox.call("POST", "/v1/orders", body, options);
      expect(lost.body.error.code).toBe(code);
      expect(await salesOf(customer)).toHaveLength(when === "after" ? 1 : 0);
      await sandbox.ok("POST", "/v1/orders", body, options);
      expect(await salesOf(customer)).toHaveLength(1);
    }
  },
);

test("switches take the gateway away and want cards again", async () => {
  const customer = await aCustomer(sandbox);
  const body = await orderFor(customer);
  const cases: [object, object, number, string][] = [
    [{ gateway_configured: false }, { gateway_configured: true }, 400, "merchant_not_configured"],
    [{ card_replacement_required: true }, { card_replacement_required: false }, 400, "replacement_required"],
  ];
  for (const [on, off, status, code] of cases) {
    await sandbox.control("PUT", "/switches", on);
    const called = await sandbox.call("POST", "/v1/orders", body);
    expectRefusal(called, status, code);
    expect(called.body.error.type).toBe("processing_error");
    await sandbox.control("PUT", "/switches", off);
  }
  expect(await salesOf(customer)).toEqual([]);
});

test("a customer without a card is not configured", async () => {
  const customer = await aCustomer(sandbox, null);
  const plan = await aPlan(sandbox, "box-monthly-usd");
  const payment_method_id = unknownId;
  const order = { ...(await orderFor(customer)), payment_method_id };
  const billing_cycle = { interval: "month", interval_count: 1 };
  const subscription = {
    customer_id: customer.id,
    plan_id: plan.id,
    payment_method_id,
    billing_cycle,
  };
  for (const [path, body] of [
    ["/v1/orders", order],
    ["/v1/subscriptions", subscription],
  ] as const) {
    expectRefusal(await sandbox.call("POST", path, body), 400, "customer_not_configured", "customer_id");
  }
});

test("resource_in_use and invalid_state_transition have a path each", async () => {
  const customer = await aCustomer(sandbox);
  const card = `/v1/customers/${customer.id}/payment_methods/${customer.default_payment_method_id}`;
  expectRefusal(await sandbox.call("DELETE", card), 400, "resource_in_use");
  const failed = await anOrder(sandbox, await aCustomer(sandbox, "card_visa_declined"));
  const refund = await sandbox.call("POST", `/v1/orders/${failed.id}/refund`, {});
  expectRefusal(refund, 400, "invalid_state_transition");
});

test("a declined charge is no error body", async () => {
  const customer = await aCustomer(sandbox, "card_visa_declined");
  const called = await sandbox.call("POST", "/v1/orders", await orderFor(customer));
  expect(called.status).toBe(201);
  expect(called.body).toMatchObject({ status: "failed", failure_code: "processor_declined" });
});

test("a signature can be checked: webhook_signature_failed says why it does not hold", async () => {
  const receiver = await startReceiver();
  const { id } = await register(sandbox, receiver.url);
  await sandbox.ok("POST", `/v1/webhook_endpoints/${id}/test`);
  await sandbox.control("GET", "/idle");
  const [received] = receiver.received;
  const signature = String(received?.headers["svc-signature"]);
  const body = received?.raw.toString();
  const headers = { "SVC-Signature": signature };
  const good = await sandbox.control("POST", "/signature_check", {
    endpoint_id: id,
    headers,
    body,
  });
  expect(good).toEqual({ valid: true });
  const bad = await sandbox.tryControl("POST", "/signature_check", {
    endpoint_id: id,
    headers,
    body: `${body} `,
  });
  expectRefusal(bad, 401, "webhook_signature_failed");
  expect(bad.body.error.type).toBe("webhook_error");
  await sandbox.ok("DELETE", `/v1/webhook_endpoints/${id}`);
  await receiver.close();
});

test("rates of faults repeat under a seed", async () => {
  const statuses = async () => {
    const api = { error_500: 0.3, error_503: 0.2, error_429: 0.2 };
    await sandbox.control("PUT", "/faults", { seed: 7, api });
    const seen: number[] = [];
    for (let i = 0; i < 30; i++) seen.push((await sandbox.call("GET", "/v1/plans?limit=1")).status);
    return seen;
  };
  const first = await statuses();
  expect(new Set(first)).toEqual(new Set([200, 429, 500, 503]));
  expect(await statuses()).toEqual(first);
  await sandbox.control("PUT", "/faults", {});
});

test("an answer can be a proxy's page, late, or cut off before and after the charge", async () => {
  const headers = { authorization: `Bearer ${testKey}` };
  const get = () => fetch(`${sandbox.url}/v1/plans?limit=1`, { headers });
  await sandbox.control("PUT", "/faults", { api: { html: 1 } });
  const page = await get();
  expect([page.status, page.headers.get("content-type")]).toEqual([502, "text/html; charset=utf-8"]);
  expect(await page.text()).toContain("Bad Gateway");
  await sandbox.control("PUT", "/faults", { api: { slow: { rate: 1, max_ms: 20 } } });
  expect((await get()).status).toBe(200);
  for (const [fault, sales] of [
    ["cut", 0],
    ["cut_after", 1],
  ] as const) {
    const customer = await aCustomer(sandbox);
    const body = await orderFor(customer);
    await sandbox.control("PUT", "/faults", { api: { [fault]: 1 } });
    await expect(sandbox.call("POST", "/v1/orders", body)).rejects.toThrow("fetch failed");
    await sandbox.control("PUT", "/faults", {});
    expect(await salesOf(customer)).toHaveLength(sales);
  }
});
