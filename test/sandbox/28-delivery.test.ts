import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  type Json,
  type Received,
  type TestSandbox,
  aCustomer,
  aSubscription,
  anOrder,
  register,
  startReceiver,
} from "./harness.ts";
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
const types = () => receiver.received.map(({ event }) => event.type as string);

test("events are signed envelopes", async () => {
  const { signing_secret } = await register(sandbox, receiver.url);
  const customer = await aCustomer(sandbox);
  await aSubscription(sandbox, customer);
  await idle();
  expect(types().sort()).toEqual(["customer.created", "order.created", "order.succeeded", "subscription.created"]);
  for (const received of receiver.received) {
    expect(verify(received, signing_secret)).toMatchObject({ ok: true });
    expect(Object.keys(received.event)).toEqual(["id", "type", "created_at", "api_version", "data"]);
    expect(received.event.data.object.id).toMatch(/^[0-9a-f-]{36}$/);
    expect(received.headers["content-type"]).toBe("application/json");
  }
});

test("each endpoint gets what it asked for, signed with its own secret", async () => {
  const other = await startReceiver();
  const first = await register(sandbox, receiver.url, ["customer.created"]);
  const second = await register(sandbox, other.url, ["order.*"]);
  await anOrder(sandbox, await aCustomer(sandbox));
  await idle();
  expect(types()).toEqual(["customer.created"]);
  expect(other.received.map(({ event }) => event.type as string).sort()).toEqual(["order.created", "order.succeeded"]);
  expect(verify(receiver.received[0] as Received, first.signing_secret).ok).toBe(true);
  expect(verify(other.received[0] as Received, first.signing_secret).ok).toBe(false);
  expect(verify(other.received[0] as Received, second.signing_secret).ok).toBe(true);
  await other.close();
});

test("failures are retried by the schedule, with the same id and bytes and a fresh time", async () => {
  stage.answer = () => 503;
  await register(sandbox, receiver.url);
  await aCustomer(sandbox);
  await idle();
  expect(receiver.received).toHaveLength(1);
  const [waiting] = await deliveries();
  expect(waiting).toMatchObject({ status: "pending", attempts: [{ status: 503 }] });
  await sandbox.control("POST", "/clock", { advance_seconds: 6 });
  expect(receiver.received).toHaveLength(2);
  await sandbox.control("POST", "/clock", { advance_seconds: 200 });
  expect(receiver.received).toHaveLength(2);
  stage.answer = () => 204;
  await sandbox.control("POST", "/clock", { advance_seconds: 100 });
  expect(receiver.received).toHaveLength(3);
  const [first, , third] = receiver.received as [Received, Received, Received];
  expect(third.raw.equals(first.raw)).toBe(true);
  const [done] = await deliveries();
  expect(done).toMatchObject({ status: "succeeded", next_attempt_at: null });
});

test("a jump makes every attempt at its own time; after the last a delivery has failed", async () => {
  stage.answer = () => 301;
  await sandbox.control("POST", "/clock", { now: "2026-03-01T09:00:00Z" });
  await sandbox.control("PUT", "/switches", { delivery_retry_seconds: [5, 300, 86_400] });
  await register(sandbox, receiver.url);
  await aCustomer(sandbox);
  await sandbox.control("POST", "/clock", { advance_seconds: 30 * 86_400 });
  const [failed] = await deliveries("?status=failed");
  expect(failed).toMatchObject({ error_code: "webhook_delivery_failed", next_attempt_at: null });
  expect(failed.attempts.map(({ at }: Json) => at.slice(8, 19))).toEqual([
    "01T09:00:00",
    "01T09:00:05",
    "01T09:05:05",
    "02T09:05:05",
  ]);
  expect(receiver.received).toHaveLength(4);
});

test("a jump over a year does the retries of thousands of deliveries to an endpoint that is gone", async () => {
  await sandbox.control("POST", "/clock", { now: "2026-03-01T09:00:00Z" });
  await register(sandbox, "http://127.0.0.1:1/gone", ["subscription.charged", "order.*"]);
  for (let i = 0; i < 3; i++) {
    const billing_cycle = { interval: "day", interval_count: 1 };
    await aSubscription(sandbox, await aCustomer(sandbox), { billing_cycle });
  }
  await sandbox.control("POST", "/clock", { advance_seconds: 365 * 86_400 });
  const all = await deliveries("?limit=100000");
  expect(all).toHaveLength(3 * (2 + 365 * 3));
  const over = all.filter(({ created_at }) => created_at < "2027-02-20");
  expect(new Set(over.map(({ status }) => status))).toEqual(new Set(["failed"]));
  for (const { created_at, attempts } of over) {
    expect(attempts).toHaveLength(10);
    expect(Date.parse(attempts[1].at) - Date.parse(created_at)).toBe(5000);
    expect(attempts[9].error).toContain("ECONNREFUSED");
  }
});

test("nobody listening is a failure", async () => {
  await register(sandbox, "http://127.0.0.1:1/nobody");
  await aCustomer(sandbox);
  await idle();
  const [waiting] = await deliveries();
  expect(waiting.attempts[0].status).toBeNull();
  expect(waiting.attempts[0].error).toBeTruthy();
});

test("what could not be reached for a while gets all of it when it is back", async () => {
  const { id } = await register(sandbox, "http://127.0.0.1:1/later");
  await sandbox.control("PUT", "/switches", { delivery_concurrency: 1 });
  for (let i = 0; i < 5; i++) await aCustomer(sandbox, null);
  await idle();
  expect((await deliveries()).map(({ attempts }) => attempts.length)).toEqual([1, 1, 1, 1, 1]);
  await sandbox.ok("PATCH", `/v1/webhook_endpoints/${id}`, { url: receiver.url });
  await sandbox.control("POST", "/clock", { advance_seconds: 6 });
  expect(types()).toEqual(Array(5).fill("customer.created"));
  expect(new Set((await deliveries()).map(({ status }) => status))).toEqual(new Set(["succeeded"]));
});

test("events are snapshots, and a GET after one never shows an older state", async () => {
  const states: [string, string][] = [];
  stage.answer = async ({ event }) => {
    if (!event.type.startsWith("order.")) return 200;
    const { id, updated_at } = event.data.object;
    states.push([updated_at, (await sandbox.ok("GET", `/v1/orders/${id}`)).updated_at]);
    return 200;
  };
  await register(sandbox, receiver.url);
  const order = await anOrder(sandbox, await aCustomer(sandbox));
  for (const amount of [1, 2, 3]) {
    await sandbox.ok("POST", `/v1/orders/${order.id}/refund`, { amount });
  }
  await idle();
  expect(states).toHaveLength(5);
  expect(states.every(([then, now]) => now >= then)).toBe(true);
  expect(new Set(states.map(([then]) => then)).size).toBe(5);
});

test("a moved clock moves the event's time and not that of the signature", async () => {
  const { signing_secret } = await register(sandbox, receiver.url);
  await sandbox.control("POST", "/clock", { now: "2031-05-06T07:08:09Z" });
  await aCustomer(sandbox);
  await idle();
  const [received] = receiver.received as [Received];
  expect(received.event.created_at).toBe("2031-05-06T07:08:09.000Z");
  expect(verify(received, signing_secret).ok).toBe(true);
});

test("the scheme is a switch", async () => {
  await sandbox.control("PUT", "/switches", { signature_scheme: "standard-webhooks" });
  await register(sandbox, receiver.url);
  await aCustomer(sandbox);
  await idle();
  const [received] = receiver.received as [Received];
  expect(received.headers["webhook-id"]).toBe(received.event.id);
  expect(received.headers["svc-signature"]).toBeUndefined();
});

describe("faults", () => {
  const put = (delivery: object, seed: number | string = 1) => sandbox.control("PUT", "/faults", { seed, delivery });
  const customers = async (count: number) => {
    for (let i = 0; i < count; i++) await aCustomer(sandbox, null);
    await idle();
  };
  const names = () => receiver.received.map(({ event }) => event.data.object.email as string);

  test("rates are numbers from 0 to 1, or carry details, and come back complete", async () => {
    const faults = await put({ drop: 0.5, corrupt: { rate: 1, retry: "never" } });
    expect(faults.delivery).toMatchObject({
      drop: { rate: 0.5 },
      corrupt: { rate: 1, retry: "never" },
      duplicate: { rate: 0 },
    });
    expect(await sandbox.control("GET", "/faults")).toEqual(faults);
    expect(await sandbox.control("PUT", "/faults", faults)).toEqual(faults);
    const bad = await fetch(`${sandbox.url}/_sandbox/faults`, {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ delivery: { drop: 2 } }),
    });
    expect(bad.status).toBe(400);
  });

  test("what is dropped is lost for good", async () => {
    await register(sandbox, receiver.url);
    await put({ drop: 1 });
    await customers(3);
    await sandbox.control("POST", "/clock", { advance_seconds: 10 * 86_400 });
    expect(receiver.received).toEqual([]);
    expect((await deliveries()).map(({ status }) => status)).toEqual(["lost", "lost", "lost"]);
  });

  test("duplicates are the same bytes again", async () => {
    await register(sandbox, receiver.url);
    await put({ duplicate: 1 });
    await customers(3);
    expect(receiver.received).toHaveLength(6);
    expect(new Set(receiver.received.map(({ raw }) => raw.toString())).size).toBe(3);
  });

  test("corrupted bytes do not verify; a good copy follows", async () => {
    const { signing_secret } = await register(sandbox, receiver.url);
    stage.answer = (received) => (verify(received, signing_secret).ok ? 200 : 401);
    await put({ corrupt: 1 });
    await customers(3);
    const verified = receiver.received.map((received) => verify(received, signing_secret).ok);
    expect(verified.filter(Boolean)).toHaveLength(3);
    expect(verified).toHaveLength(6);
    await put({ corrupt: { rate: 1, retry: "never" } });
    await customers(2);
    expect(receiver.received).toHaveLength(8);
    expect(await deliveries("?status=lost")).toHaveLength(2);
  });

  test("reordered deliveries come after later ones, all of them", async () => {
    await register(sandbox, receiver.url);
    await sandbox.control("PUT", "/switches", { delivery_concurrency: 1 });
    await put({ reorder: { rate: 0.4, max_ms: 200 } });
    await sandbox.control("POST", "/traffic", { orders: 40, subscriptions: 0, seed: 3, days: 1 });
    await idle();
    const sent = (await sandbox.control("GET", "/events")).data.map((event: Json) => event.id);
    const came = receiver.received.map(({ event }) => event.id as string);
    expect(came).not.toEqual(sent);
    expect(came.toSorted()).toEqual(sent.toSorted());
  });

  test("the same seed spoils the same deliveries", async () => {
    const fates: string[][] = [];
    for (const seed of ["a", "a", "b"]) {
      await sandbox.control("POST", "/reset", {});
      await register(sandbox, receiver.url);
      await put({ drop: 0.3, duplicate: 0.3 }, seed);
      await customers(20);
      fates.push((await deliveries()).map(({ faults }) => faults.join()));
    }
    expect(fates[0]).toEqual(fates[1]);
    expect(fates[0]).not.toEqual(fates[2]);
  });

  test("thin objects, unknown types, extra and missing fields", async () => {
    await register(sandbox, receiver.url);
    const latest = async (fault: string) => {
      await put({ [fault]: 1 });
      await aCustomer(sandbox, null);
      await idle();
      return receiver.received.at(-1)?.event;
    };
    expect(Object.keys((await latest("thin_object")).data.object)).toEqual(["id"]);
    expect((await latest("extra_fields")).data.object.sandbox_extra).toBeDefined();
    expect("metadata" in (await latest("missing_field")).data.object).toBe(false);
    expect((await latest("unknown_type")).type).toBe("customer.unheard_of");
    expect(names().length).toBe(5);
  });
});

describe("events", () => {
  test("every event of the table comes from its trigger", async () => {
    await register(sandbox, receiver.url);
    await sandbox.control("POST", "/clock", { now: "2026-03-01T00:00:00Z" });
    const customer = await aCustomer(sandbox);
    const order = await anOrder(sandbox, customer);
    await sandbox.ok("POST", `/v1/orders/${order.id}/refund`, {});
    await anOrder(sandbox, await aCustomer(sandbox, "card_visa_declined"));
    const { id } = await aSubscription(sandbox, customer);
    await sandbox.control("POST", "/clock", { advance_seconds: 32 * 86_400 });
    const path = `/v1/subscriptions/${id}`;
    const card = await sandbox.ok("POST", `/v1/customers/${customer.id}/payment_methods`, {
      billing_id: "card_amex",
    });
    await sandbox.ok("PATCH", path, { payment_method_id: card.id });
    await sandbox.ok("PATCH", path, { billing_cycle: { interval: "day", interval_count: 7 } });
    await sandbox.ok("DELETE", path);
    await idle();
    expect([...new Set(types())]).toEqual(
      expect.arrayContaining([
        "order.created",
        "order.succeeded",
        "order.failed",
        "order.refunded",
        "customer.created",
        "subscription.created",
        "subscription.charged",
        "subscription.updated",
        "subscription.billing.updated",
        "subscription.canceled",
      ]),
    );
  });

  test("order.failed tells four cases apart", async () => {
    await register(sandbox, receiver.url, ["order.failed"]);
    await sandbox.control("POST", "/clock", { now: "2026-03-01T00:00:00Z" });
    await sandbox.control("PUT", "/switches", { dunning_retry_days: [1] });
    const poor = await aCustomer(sandbox, "card_insufficient_funds");
    await anOrder(sandbox, poor);
    await aSubscription(sandbox, poor);
    await aSubscription(sandbox, await aCustomer(sandbox, "card_renewal_declined"));
    await sandbox.control("POST", "/clock", { advance_seconds: 33 * 86_400 });
    await idle();
    const told = receiver.received
      .map(({ event }) => event.data.object)
      .map(({ subscription_id, subscription_cycle, attempt_count, next_retry_at }: Json) => [
        subscription_id !== null,
        subscription_cycle,
        attempt_count,
        next_retry_at,
      ]);
    expect(told).toEqual([
      [false, null, null, null],
      [true, null, 1, null],
      [true, 2, 1, "2026-04-02T00:00:00.000Z"],
      [true, 2, 2, null],
    ]);
  });

  test("subscription.* includes subscription.billing.updated", async () => {
    await register(sandbox, receiver.url, ["subscription.*"]);
    const { id } = await aSubscription(sandbox, await aCustomer(sandbox));
    const billing_cycle = { interval: "day", interval_count: 7 };
    await sandbox.ok("PATCH", `/v1/subscriptions/${id}`, { billing_cycle });
    await idle();
    expect(types()).toContain("subscription.billing.updated");
    expect(types().every((type) => type.startsWith("subscription."))).toBe(true);
  });

  test("an endpoint pinned to an old version gets that version", async () => {
    const body = { url: receiver.url, enabled_events: ["*"], api_version: "2024-11-15" };
    await sandbox.ok("POST", "/v1/webhook_endpoints", body);
    await register(sandbox, receiver.url);
    await aCustomer(sandbox);
    await idle();
    const versions = receiver.received.map(({ event }) => event.api_version as string).sort();
    expect(versions).toEqual(["2024-11-15", "2025-09-01"]);
  });
});

describe("redelivery", () => {
  test("sends the same event again, whatever became of it, with a fresh signature", async () => {
    const { signing_secret } = await register(sandbox, receiver.url);
    await aCustomer(sandbox);
    await idle();
    const [done] = await deliveries();
    const again = await sandbox.control("POST", `/deliveries/${done.id}/redeliver`);
    expect(again).toMatchObject({ id: done.id, status: "succeeded" });
    expect(again.attempts).toHaveLength(2);
    const [first, second] = receiver.received as [Received, Received];
    expect(second.raw.equals(first.raw)).toBe(true);
    expect(verify(second, signing_secret).ok).toBe(true);

    await sandbox.control("PUT", "/faults", { delivery: { drop: 1 } });
    await aCustomer(sandbox);
    await idle();
    const lost = (await deliveries("?status=lost"))[0];
    await sandbox.control("PUT", "/faults", {});
    await sandbox.control("POST", `/deliveries/${lost.id}/redeliver`);
    expect(receiver.received).toHaveLength(3);
    const unknown = await sandbox.tryControl("POST", "/deliveries/nothing/redeliver");
    expect(unknown.status).toBe(404);
  });
});
