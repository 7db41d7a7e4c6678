import { beforeAll, describe, expect, test } from "vitest";
import { type Json, type TestSandbox, liveKey, startTestSandbox } from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();
let answer: Json;
let state: Json;
let events: Json[];
beforeAll(async () => {
  await sandbox.control("POST", "/clock", { now: "2026-01-15T10:00:00Z" });
  answer = await sandbox.control("POST", "/traffic", {
    orders: 600,
    subscriptions: 80,
    refunds: 60,
    declines: 40,
    chargebacks: 20,
    seed: 7,
  });
  state = await shown(sandbox);
  events = (await sandbox.control("GET", "/events?limit=50000")).data;
});

/** A snapshot without what a restart needs, which knows the wall clock. */
async function shown(from: TestSandbox): Promise<Json> {
  const { state: _restart, ...snapshot } = await from.control("GET", "/snapshot");
  return snapshot;
}

const by = (records: Json[], field: string) => new Map(records.map((r) => [r[field] as string, r]));
describe("a generated history", () => {
  test("is as large as was asked for and has everything in it", () => {
    expect(answer.counts).toMatchObject({ orders: 600, subscriptions: 80 });
    expect(answer.counts.refunds).toBeGreaterThanOrEqual(60);
    expect(answer.counts.chargebacks).toBeGreaterThan(10);
    expect(answer.counts.renewals).toBeGreaterThan(50);
    expect(answer.counts.redemptions).toBeGreaterThan(60);
    expect(answer.clock.mode).toBe("manual");
    const statuses = new Set(state.orders.map((order: Json) => order.status));
    for (const status of [
      "succeeded",
      "failed",
      "partially_refunded",
      "refunded",
      "chargeback",
      "chargeback_accepted",
      "chargeback_dismissed",
      "voided",
    ]) {
      expect(statuses).toContain(status);
    }
    const subscriptions = new Set<string>(state.subscriptions.map((s: Json) => s.status));
    expect([...subscriptions].sort()).toEqual(["active", "canceled", "completed", "failed", "past_due"]);
    expect(state.hard_deleted.customers.length).toBeGreaterThan(0);
    expect(state.customers.some((customer: Json) => customer.deleted)).toBe(true);
  });

  test("a share of orders and subscriptions has a discount, and none is free", () => {
    const discounted = (state.orders as Json[]).filter((order) => order.discount_amount > 0);
    expect(discounted.length).toBeGreaterThan(60);
    expect(new Set(discounted.map((order) => order.applied_coupon.name)).size).toBe(6);
    expect(state.orders.every((order: Json) => order.total > 0)).toBe(true);
    const renewals = discounted.filter((order) => (order.subscription_cycle ?? 0) > 1);
    expect(renewals.length).toBeGreaterThan(3);
    expect(state.subscriptions.some((s: Json) => s.applied_coupon !== null)).toBe(true);
    expect(state.coupon_redemptions).toHaveLength(answer.counts.redemptions);
  });

  test("has order.failed in its four cases", () => {
    const cases = new Set(
      events
        .filter(({ type }) => type === "order.failed")
        .map(({ data: { object } }) => {
          if (object.subscription_id === null) return "one-time";
          if (object.subscription_cycle === null) return "first charge";
          return object.next_retry_at === null ? "final" : "dunning";
        }),
    );
    expect([...cases].sort()).toEqual(["dunning", "final", "first charge", "one-time"]);
  });

  test("has every event of the table", () => {
    const types = new Set(events.map(({ type }) => type));
    for (const type of [
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
    ]) {
      expect(types).toContain(type);
    }
  });

  test("the same seed after the same calls gives the same history", async () => {
    const other = await startTestSandbox();
    await other.control("POST", "/clock", { now: "2026-01-15T10:00:00Z" });
    await other.control("POST", "/traffic", {
      orders: 600,
      subscriptions: 80,
      refunds: 60,
      declines: 40,
      chargebacks: 20,
      seed: 7,
    });
    expect(await shown(other)).toEqual(state);
    expect((await other.control("GET", "/events?limit=50000")).data).toEqual(events);
    await other.close();
  });

  test("updated_at never falls along the events of an object, and only few tie", () => {
    const last = new Map<string, string>();
    let ties = 0;
    for (const { type, data } of events) {
      const { id, created_at, updated_at } = data.object;
      expect(updated_at >= created_at).toBe(true);
      const before = last.get(id);
      if (before !== undefined) expect(updated_at >= before, `${type} ${id}`).toBe(true);
      if (before === updated_at && !type.startsWith("subscription.")) ties += 1;
      last.set(id, updated_at);
    }
    expect(ties).toBeGreaterThan(0);
    expect(ties).toBeLessThan(events.length * 0.02);
    const current = by([...state.orders, ...state.customers], "id");
    for (const [id, updated_at] of last) {
      const record = current.get(id);
      if (record !== undefined) expect(record.updated_at >= updated_at).toBe(true);
    }
  });
});

describe("the API", () => {
  test("the lists show the same as the snapshot", async () => {
    for (const [path, query, name] of [
      ["orders", "expand=items,transactions", "orders"],
      ["transactions", "", "transactions"],
      ["subscriptions", "expand=cycles", "subscriptions"],
      ["customers", "deleted=true", "customers"],
    ] as const) {
      const listed: Json[] = [];
      for (let cursor = ""; ;) {
        const page = await sandbox.ok("GET", `/v1/${path}?limit=100&${query}${cursor}`);
        listed.push(...page.data);
        if (!page.has_more) break;
        cursor = `&starting_after=${page.cursors.next}`;
      }
      expect(listed.toReversed()).toEqual(state[name]);
    }
  });
});

describe("controls", () => {
  test("a reset with a seed starts again", async () => {
    const other = await startTestSandbox(1);
    const first = await other.control("GET", "/snapshot");
    await other.control("POST", "/traffic", { orders: 5, subscriptions: 1 });
    const reset = await other.control("POST", "/reset", {});
    expect(reset.seed).toBe("1");
    const again = await other.control("GET", "/snapshot");
    expect(again.plans.map((plan: Json) => plan.id)).toEqual(first.plans.map((p: Json) => p.id));
    expect(again.orders).toEqual([]);
    await other.control("POST", "/reset", { seed: 2 });
    const third = await other.control("GET", "/snapshot");
    expect(third.plans[0].id).not.toBe(first.plans[0].id);
    await other.close();
  });

  test("wishes beyond the number of orders are cut", async () => {
    const other = await startTestSandbox();
    const body = { orders: 3, subscriptions: 0, refunds: 5, declines: 2, chargebacks: 9, seed: 1 };
    const { counts } = await other.control("POST", "/traffic", body);
    expect(counts.orders).toBe(3);
    expect(counts.declines).toBeGreaterThanOrEqual(2);
    await other.close();
  });

  test("the clock takes one of its two forms", async () => {
    const post = (body: object) =>
      fetch(`${sandbox.url}/_sandbox/clock`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    for (const body of [
      {},
      { advance_seconds: 1, now: "2026-01-01T00:00:00Z" },
      { advance_seconds: -1 },
      { now: "x" },
      { advance_seconds: 1, other: 1 },
    ]) {
      expect((await post(body)).status).toBe(400);
    }
  });
});

test("a history of the live environment has everything that one of the test environment has", async () => {
  const live = await startTestSandbox();
  await live.control("PUT", "/switches", { live_settlement_days: 2 });
  const wish = {
    orders: 200,
    subscriptions: 40,
    refunds: 20,
    declines: 20,
    chargebacks: 5,
    seed: 7,
  };
  const { counts } = await live.control("POST", "/traffic", { ...wish, mode: "live" });
  expect(counts).toMatchObject({ orders: 200, subscriptions: 40 });
  expect(counts.refunds).toBeGreaterThanOrEqual(20);
  expect(counts.declines).toBeGreaterThanOrEqual(20);
  expect(counts.renewals).toBeGreaterThan(20);
  const { orders } = await live.control("GET", "/snapshot?mode=live");
  const statuses = new Set(orders.map((order: Json) => order.status));
  for (const status of ["succeeded", "failed", "refunded", "chargeback"]) {
    expect(statuses).toContain(status);
  }
  expect((await live.control("GET", "/snapshot?mode=test")).orders).toEqual([]);
  const { data } = await live.ok("GET", "/v1/orders?status=succeeded&limit=1", undefined, {
    key: liveKey,
  });
  expect(data).toHaveLength(1);
  await live.close();
});
