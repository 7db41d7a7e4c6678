import { afterEach, beforeAll, expect, test } from "vitest";
import { allEndpoints } from "../../src/parts/sandbox/resources/all-endpoints.ts";
import { aCustomer, expectRefusal } from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();
beforeAll(async () => {
  // A stopped clock: windows end only when a test moves it.
  await sandbox.control("POST", "/clock", { now: "2026-03-01T00:00:00Z" });
});
afterEach(() => limits({ enabled: false }));

const limits = async (rate_limits: object) => {
  await sandbox.control("PUT", "/switches", { rate_limits });
  // Past every window of the test before.
  await sandbox.control("POST", "/clock", { advance_seconds: 100_000 });
};
const get = (key?: string) => sandbox.call("GET", "/v1/plans", undefined, key === undefined ? {} : { key });
const unknownId = "00000000-0000-4000-8000-000000000000";

test.each(allEndpoints.map(({ endpoint }) => endpoint))("$method $path answers 429", async ({ method, path }) => {
  await limits({ enabled: true, read: 0, write: 0, coupon_validation: 0 });
  const called = await sandbox.call(method, `/v1${path.replaceAll(/\{\w+\}/g, unknownId)}`);
  const code = path === "/coupons/validate" ? "too_many_requests" : "rate_limit_exceeded";
  expectRefusal(called, 429, code);
});

test("a category is limited for a window; whoever waits Retry-After is let through", async () => {
  await limits({ enabled: true, read: 2, window_seconds: 30 });
  const first = await get();
  expect(first.headers.get("ratelimit-limit")).toBe("2");
  expect(first.headers.get("ratelimit-remaining")).toBe("1");
  await sandbox.control("POST", "/clock", { advance_seconds: 10 });
  expect((await get()).status).toBe(200);
  const refused = await get();
  expectRefusal(refused, 429, "rate_limit_exceeded");
  expect(refused.body.error.type).toBe("rate_limit_error");
  expect(refused.headers.get("retry-after")).toBe("20");
  expect(refused.headers.get("ratelimit-remaining")).toBe("0");
  expect(refused.headers.get("ratelimit-reset")).toBe("20");
  expect((await sandbox.call("POST", "/v1/customers", { email: "limit@example.test" })).status).toBe(201);
  await sandbox.control("POST", "/clock", { advance_seconds: 19 });
  expect((await get()).status).toBe(429);
  await sandbox.control("POST", "/clock", { advance_seconds: 1 });
  expect((await get()).status).toBe(200);
});

test("all requests of a merchant together are limited too", async () => {
  await limits({ enabled: true, read: 5, write: 5, global: 3 });
  for (let i = 0; i < 2; i++) expect((await get()).status).toBe(200);
  await sandbox.ok("POST", "/v1/customers", { email: "global@example.test" });
  expectRefusal(await get(), 429, "global_rate_limit_exceeded");
});

test("coupon validation has a limit and a code of its own", async () => {
  await limits({ enabled: true, coupon_validation: 1 });
  const validate = () => sandbox.call("POST", "/v1/coupons/validate", { code: "NOTHING" });
  expect((await validate()).status).toBe(200);
  expectRefusal(await validate(), 429, "too_many_requests");
  expect((await get()).status).toBe(200);
});

test("Retry-After is in seconds or an HTTP date", async () => {
  await limits({ enabled: true, read: 0, window_seconds: 30, retry_after: "http_date" });
  const refused = await get();
  const { now } = (await sandbox.control("GET", "")).clock;
  const at = Date.parse(refused.headers.get("retry-after") ?? "");
  expect(at - Date.parse(now)).toBe(30_000);
});

test("a limited write changes nothing and leaves its idempotency key free", async () => {
  const customer = await aCustomer(sandbox);
  await limits({ enabled: true, write: 0 });
  const idempotency = crypto.randomUUID();
  const path = `/v1/customers/${customer.id}`;
  const change = { company: "changed" };
  expect((await sandbox.call("PATCH", path, change, { idempotency })).status).toBe(429);
  expect((await sandbox.ok("GET", path)).company).toBeNull();
  await limits({ enabled: false });
  expect((await sandbox.ok("PATCH", path, { company: "other" }, { idempotency })).company).toBe("other");
});

test("another merchant has limits of its own; switched off there are none", async () => {
  const other = await sandbox.control("POST", "/merchants", {});
  await limits({ enabled: true, read: 1 });
  expect([(await get()).status, (await get()).status]).toEqual([200, 429]);
  expect((await get(other.keys.test)).status).toBe(200);
  await limits({ enabled: false, read: 0 });
  const free = await get();
  expect([free.status, free.headers.get("ratelimit-limit")]).toEqual([200, null]);
});
