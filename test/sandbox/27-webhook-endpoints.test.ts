import { afterEach, beforeEach, expect, test } from "vitest";
import { type Json, type Received, type TestSandbox, aCustomer, anOrder, expectRefusal, register } from "./harness.ts";
import { type WebhookStage, deliveriesOf, startWebhookStage, verify } from "./support/webhook-stand.ts";

let stage: WebhookStage;
let sandbox: TestSandbox;
let receiver: WebhookStage["receiver"];
beforeEach(async () => {
  stage = await startWebhookStage();
  ({ sandbox, receiver } = stage);
});
afterEach(() => stage.close());

const idle = () => sandbox.control("GET", "/idle");
const deliveries = (query?: string) => deliveriesOf(sandbox, query);

test("the secret is shown once", async () => {
  const endpoint = await register(sandbox, receiver.url);
  expect(endpoint).toMatchObject({
    status: "enabled",
    has_pending_rotation: false,
    rotation_expires_at: null,
    api_version_deprecated: false,
  });
  expect(endpoint.signing_secret.length).toBeGreaterThan(16);
  const { signing_secret: _, ...shown } = endpoint;
  const path = `/v1/webhook_endpoints/${endpoint.id}`;
  expect(await sandbox.ok("GET", path)).toEqual(shown);
  expect((await sandbox.ok("GET", "/v1/webhook_endpoints")).data).toEqual([shown]);
  const patched = await sandbox.ok("PATCH", path, { description: "x" });
  expect(patched.signing_secret).toBeUndefined();
});

test("what does not fit is refused", async () => {
  const create = (body: object) => sandbox.call("POST", "/v1/webhook_endpoints", body);
  const enabled_events = ["*"];
  const { url } = receiver;
  const cases: [object, string, string][] = [
    [{ url: "http://example.test/x", enabled_events }, "webhook_endpoint_invalid", "url"],
    [{ url: "nonsense", enabled_events }, "invalid_format", "url"],
    [{ enabled_events }, "required_field", "url"],
    [{ url }, "required_field", "enabled_events"],
    [{ url, enabled_events: [] }, "invalid_value", "enabled_events"],
    [{ url, enabled_events: ["order.eaten"] }, "invalid_value", "enabled_events"],
    [{ url, enabled_events, api_version: "1999-01-01" }, "invalid_api_version", "api_version"],
  ];
  for (const [body, code, param] of cases) expectRefusal(await create(body), 400, code, param);
  await sandbox.control("PUT", "/switches", { allow_http_endpoints: false });
  const called = await create({ url, enabled_events });
  expectRefusal(called, 400, "webhook_endpoint_invalid", "url");
  expect(called.body.error.type).toBe("webhook_error");
});

test("an unknown one is 404", async () => {
  const path = "/v1/webhook_endpoints/nothing";
  for (const [method, at] of [
    ["GET", path],
    ["PATCH", path],
    ["DELETE", path],
    ["POST", `${path}/rotate_secret`],
    ["POST", `${path}/test`],
  ] as const) {
    expectRefusal(await sandbox.call(method, at), 404, "resource_not_found");
  }
});

test("each field is changed alone; a disabled one gets nothing", async () => {
  const { id } = await register(sandbox, receiver.url);
  const path = `/v1/webhook_endpoints/${id}`;
  for (const change of [
    { description: "d" },
    { enabled_events: ["order.*"] },
    { api_version: "2024-11-15" },
    { status: "disabled" },
  ]) {
    expect(await sandbox.ok("PATCH", path, change)).toMatchObject(change);
  }
  const pinned = await sandbox.ok("GET", path);
  expect([pinned.api_version_deprecated, pinned.api_version_sunset]).toEqual([true, "2027-11-15"]);
  expectRefusal(await sandbox.call("PATCH", path, { status: "off" }), 400, "invalid_value");
  await anOrder(sandbox, await aCustomer(sandbox));
  await sandbox.ok("PATCH", path, { status: "enabled" });
  await idle();
  expect(receiver.received).toEqual([]);
});

test("a removed one gets nothing more, pending retries included", async () => {
  stage.answer = () => 500;
  const { id } = await register(sandbox, receiver.url);
  await aCustomer(sandbox);
  await idle();
  const path = `/v1/webhook_endpoints/${id}`;
  expect(await sandbox.ok("DELETE", path)).toMatchObject({ id, deleted: true });
  await aCustomer(sandbox);
  await sandbox.control("POST", "/clock", { advance_seconds: 86_400 });
  expect(receiver.received).toHaveLength(1);
  expect((await deliveries()).map(({ status }) => status)).toEqual(["canceled"]);
});

test("both secrets sign during the grace period, the new one alone after it", async () => {
  const { id, signing_secret: old } = await register(sandbox, receiver.url);
  const path = `/v1/webhook_endpoints/${id}`;
  const rotated = await sandbox.ok("POST", `${path}/rotate_secret`, { grace_period_hours: 1 });
  const fresh = rotated.new_signing_secret;
  expect(await sandbox.ok("GET", path)).toMatchObject({
    has_pending_rotation: true,
    rotation_expires_at: rotated.previous_secret_valid_until,
  });
  const again = await sandbox.call("POST", `${path}/rotate_secret`);
  expectRefusal(again, 400, "invalid_state_transition");
  await aCustomer(sandbox);
  await idle();
  const [during] = receiver.received as [Received];
  expect(String(during.headers["svc-signature"]).match(/v1=/g)).toHaveLength(2);
  expect([verify(during, old).ok, verify(during, fresh).ok]).toEqual([true, true]);

  await sandbox.control("POST", "/clock", { advance_seconds: 3601 });
  await aCustomer(sandbox);
  await idle();
  const after = receiver.received.at(-1) as Received;
  expect([verify(after, old).ok, verify(after, fresh).ok]).toEqual([false, true]);
  expect((await sandbox.ok("GET", path)).has_pending_rotation).toBe(false);
  const hour = await sandbox.ok("POST", `${path}/rotate_secret`);
  const { now } = (await sandbox.control("GET", "")).clock;
  const grace = Date.parse(hour.previous_secret_valid_until) - Date.parse(now);
  expect(Math.round(grace / 3_600_000)).toBe(24);
  for (const grace_period_hours of [0, -1, 1.5]) {
    const called = await sandbox.call("POST", `${path}/rotate_secret`, { grace_period_hours });
    expectRefusal(called, 400, "invalid_value", "grace_period_hours");
  }
});

test("a test event comes although nobody asked for its type", async () => {
  const { id, signing_secret } = await register(sandbox, receiver.url, ["order.*"]);
  const { event_id } = await sandbox.ok("POST", `/v1/webhook_endpoints/${id}/test`);
  await idle();
  const [received] = receiver.received as [Received];
  expect(received.event.id).toBe(event_id);
  expect(verify(received, signing_secret).ok).toBe(true);
});

test("patterns are stored as sent; the list pages", async () => {
  const enabled_events = ["order.*", "subscription.billing.*", "customer.created"];
  const made: string[] = [];
  for (let i = 0; i < 3; i++) made.unshift((await register(sandbox, receiver.url, enabled_events)).id);
  const first = await sandbox.ok("GET", "/v1/webhook_endpoints?limit=2");
  expect(first.data[0].enabled_events).toEqual(enabled_events);
  const rest = await sandbox.ok("GET", `/v1/webhook_endpoints?limit=2&starting_after=${first.cursors.next}`);
  const back = await sandbox.ok("GET", `/v1/webhook_endpoints?limit=2&ending_before=${rest.data[0].id}`);
  expect(new Set([...first.data, ...rest.data].map(({ id }: Json) => id))).toEqual(new Set(made));
  expect(back.data).toEqual(first.data);
});

test("a replay of the creation shows the secret again", async () => {
  const body = { url: receiver.url, enabled_events: ["*"] };
  const idempotency = crypto.randomUUID();
  const first = await sandbox.ok("POST", "/v1/webhook_endpoints", body, { idempotency });
  const again = await sandbox.ok("POST", "/v1/webhook_endpoints", body, { idempotency });
  expect(again.signing_secret).toBe(first.signing_secret);
});

test("the grace period is what was asked for", async () => {
  await sandbox.control("POST", "/clock", { now: "2026-03-01T00:00:00Z" });
  for (const grace_period_hours of [1, 24, 72]) {
    const { id } = await register(sandbox, receiver.url);
    const path = `/v1/webhook_endpoints/${id}/rotate_secret`;
    const { previous_secret_valid_until } = await sandbox.ok("POST", path, { grace_period_hours });
    const expected = Date.parse("2026-03-01T00:00:00Z") + grace_period_hours * 3_600_000;
    expect(Date.parse(previous_secret_valid_until)).toBe(expected);
  }
});

test("deprecation and sunset follow the pinned version", async () => {
  const pin = async (api_version?: string) =>
    sandbox.ok("POST", "/v1/webhook_endpoints", {
      url: receiver.url,
      enabled_events: ["*"],
      ...(api_version === undefined ? {} : { api_version }),
    });
  expect(await pin()).toMatchObject({ api_version_deprecated: false, api_version_sunset: null });
  const old = await pin("2024-11-15");
  expect(old).toMatchObject({ api_version_deprecated: true, api_version_sunset: "2027-11-15" });
  expect(old.api_version_pinned_at).not.toBeNull();
});
