import { beforeAll, expect, test } from "vitest";
import { aPromo, redemptionsOf } from "./coupon-support.ts";
import {
  type Json,
  aCustomer,
  aPlan,
  aSubscription,
  eventTypesOf,
  eventsOf,
  expectRefusal,
  startTestSandbox,
} from "./harness.ts";
import { ordersOf, subscriptionBody } from "./support/request-bodies.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();
let customer: Json;
let body: Json;
beforeAll(async () => {
  customer = await aCustomer(sandbox);
  body = await subscriptionBody(sandbox, customer);
});

const create = (change: object) => sandbox.call("POST", "/v1/subscriptions", { ...body, ...change });

test("the first cycle is charged at once, with the setup fee", async () => {
  const plan = await aPlan(sandbox, "box-monthly-setup-usd");
  const subscription = await aSubscription(sandbox, customer, { plan: "box-monthly-setup-usd" });
  expect(subscription).toMatchObject({
    status: "active",
    current_billing_cycle: 1,
    total_billing_cycles: 0,
    plan: { id: plan.id, name: plan.name, amount: plan.amount, currency: "usd" },
    attempt_count: 0,
    next_retry_at: null,
  });
  expect(subscription.next_billing_date).toBe(subscription.current_period_end);
  const [order] = await ordersOf(sandbox, subscription.id);
  expect(order).toMatchObject({
    status: "succeeded",
    subscription_cycle: 1,
    total: plan.amount + plan.one_time_amount,
  });
  expect(await eventTypesOf(sandbox, subscription.id)).toEqual(["subscription.created"]);
});

test("the billing cycle of any plan, as it is shown, is one to subscribe with", async () => {
  const { data: plans } = await sandbox.ok("GET", "/v1/plans?limit=100");
  for (const { id, billing_cycle } of plans) {
    const { status } = await create({ plan_id: id, billing_cycle });
    expect([status, billing_cycle]).toEqual([201, billing_cycle]);
  }
});

test("a declined first charge makes a failed subscription that is never retried", async () => {
  const poor = await aCustomer(sandbox, "card_insufficient_funds");
  const subscription = await aSubscription(sandbox, poor);
  expect(subscription).toMatchObject({ status: "failed", next_billing_date: null });
  expect(subscription.failure_reason).toBeTruthy();
  const [order] = await ordersOf(sandbox, subscription.id);
  const failed = (await eventsOf(sandbox, order.id)).at(-1);
  expect(failed.type).toBe("order.failed");
  expect(failed.data.object).toMatchObject({
    subscription_id: subscription.id,
    subscription_cycle: null,
    next_retry_at: null,
  });
  const [created] = await eventsOf(sandbox, subscription.id);
  expect(created.data.object.status).toBe("failed");
  await sandbox.control("POST", "/clock", { advance_seconds: 40 * 86_400 });
  expect(await ordersOf(sandbox, subscription.id)).toHaveLength(1);
});

test.each(["customer_id", "plan_id", "payment_method_id", "billing_cycle"])("%s is required", async (field) => {
  expectRefusal(await create({ [field]: undefined }), 400, "required_field", field);
});

test("the billing cycle has its form", async () => {
  const cases: [object, string, string][] = [
    [{ interval_count: 1 }, "required_field", "billing_cycle.interval"],
    [{ interval: "month" }, "required_field", "billing_cycle.interval_count"],
    [{ interval: "week", interval_count: 1 }, "invalid_value", "billing_cycle.interval"],
    [{ interval: "day", interval_count: 0 }, "invalid_value", "billing_cycle.interval_count"],
    [{ interval: "day", interval_count: 1.5 }, "invalid_value", "billing_cycle.interval_count"],
    [{ interval: "month", interval_count: 1, anchor_day: 0 }, "invalid_value", "billing_cycle.anchor_day"],
    [{ interval: "month", interval_count: 1, anchor_day: 32 }, "invalid_value", "billing_cycle.anchor_day"],
    [{ interval: "day", interval_count: 7, anchor_day: 3 }, "invalid_value", "billing_cycle.anchor_day"],
  ];
  for (const [billing_cycle, code, param] of cases) {
    expectRefusal(await create({ billing_cycle }), 400, code, param);
  }
});

test("signup_date equals leaving the anchor day out", async () => {
  const cycle = { interval: "month", interval_count: 1 };
  const named = await create({ billing_cycle: { ...cycle, anchor_day: "signup_date" } });
  const omitted = await create({ billing_cycle: cycle });
  expect(named.body.billing_cycle).toEqual(omitted.body.billing_cycle);
});

test("what does not fit creates nothing", async () => {
  const { now } = (await sandbox.control("GET", "")).clock;
  const before = (await sandbox.control("GET", "")).counts;
  const cases: [object, number, string, string][] = [
    [{ end_date: now.slice(0, 10) }, 400, "invalid_value", "end_date"],
    [{ plan_id: "nothing" }, 404, "resource_not_found", "plan_id"],
    [{ customer_id: "nobody" }, 404, "resource_not_found", "customer_id"],
    [{ payment_method_id: "nothing" }, 404, "resource_not_found", "payment_method_id"],
    [{ shipping_option_id: "express" }, 400, "invalid_value", "shipping_option_id"],
    [{ coupon_code: "NOPE" }, 400, "code_not_found", "coupon_code"],
  ];
  for (const [change, status, code, param] of cases) {
    expectRefusal(await create(change), status, code, param);
  }
  expect((await sandbox.control("GET", "")).counts).toEqual(before);
  const bare = await aCustomer(sandbox, null);
  const called = await create({ customer_id: bare.id });
  expectRefusal(called, 400, "customer_not_configured", "customer_id");
});

test("billing_cycles 0, and neither it nor an end date, bill forever", async () => {
  for (const change of [{ billing_cycles: 0 }, {}]) {
    const { body: created } = await create(change);
    expect([created.total_billing_cycles, created.end_date]).toEqual([0, null]);
  }
});

test("an inactive plan is refused", async () => {
  const plan = await sandbox.control("POST", "/plans", {
    name: "Retired",
    amount: 500,
    currency: "usd",
    billing_cycle: { interval: "month", interval_count: 1 },
    active: false,
  });
  expectRefusal(await create({ plan_id: plan.id }), 400, "invalid_value", "plan_id");
});

test("addresses follow the rules of orders", async () => {
  const address = {
    first_name: "Ada",
    last_name: "Lovelace",
    address_line1: "1 Main Street",
    city: "Boston",
    state: "MA",
    postal_code: "02108",
    country: "US",
  };
  const { body: first } = await create({ shipping_address: address });
  expect(first.shipping_address).toMatchObject(address);
  const { id } = first.shipping_address;
  expect((await create({ shipping_address_id: id })).body.shipping_address.id).toBe(id);
  const country = await create({ shipping_address: { ...address, country: "us" } });
  expectRefusal(country, 400, "invalid_format", "shipping_address.country");
  const unknown = await create({ shipping_address_id: "any string" });
  expectRefusal(unknown, 404, "resource_not_found", "shipping_address_id");
});

test("an expired coupon, or one for other plans, creates nothing", async () => {
  const { clock, counts } = await sandbox.control("GET", "");
  const soon = new Date(Date.parse(clock.now) + 60_000).toISOString();
  const expired = await aPromo(sandbox, { expires_at: soon });
  await sandbox.control("POST", "/clock", { advance_seconds: 61 });
  expectRefusal(await create({ coupon_code: expired.code }), 400, "coupon_expired", "coupon_code");
  const other = await aPlan(sandbox, "box-annual-usd");
  const foreign = await aPromo(sandbox, { plan_scope: "specific", plan_ids: [other.id] });
  const refused = await create({ coupon_code: foreign.code });
  expectRefusal(refused, 400, "plan_not_eligible", "coupon_code");
  const after = (await sandbox.control("GET", "")).counts;
  for (const name of ["orders", "subscriptions", "transactions"]) {
    expect(after.test[name]).toBe(counts.test[name]);
  }
  expect(await redemptionsOf(sandbox, foreign)).toBe(0);
  const { status } = await create({ plan_id: other.id, coupon_code: foreign.code });
  expect([status, await redemptionsOf(sandbox, foreign)]).toEqual([201, 1]);
});

test("a plan in another currency than the coupon's is refused", async () => {
  const { code } = await aPromo(sandbox, { amount: 100 });
  const euro = await aPlan(sandbox, "box-monthly-eur");
  const refused = await create({ plan_id: euro.id, coupon_code: code });
  expectRefusal(refused, 400, "coupon_currency_mismatch", "coupon_code");
});

test("a request is one moment, however late its answer: the order is as old as its subscription", async () => {
  let ms = Date.parse("2026-01-01T00:00:00Z");
  const own = await startTestSandbox(1, { wallClock: { now: () => new Date(ms++) } });
  try {
    const subscription = await aSubscription(own, await aCustomer(own));
    const [order] = await ordersOf(own, subscription.id);
    expect(order.created_at).toBe(subscription.start_date);
  } finally {
    await own.close();
  }
});

test("the first charge is at once, and the start never moves", async () => {
  const { body: created } = await create({ billing_cycle: { interval: "day", interval_count: 7 } });
  const [order] = await ordersOf(sandbox, created.id);
  expect(order.created_at).toBe(created.start_date);
  await sandbox.control("POST", "/clock", { advance_seconds: 30 * 86_400 });
  const later = await sandbox.ok("GET", `/v1/subscriptions/${created.id}`);
  expect(later.current_billing_cycle).toBeGreaterThan(3);
  expect(later.start_date).toBe(created.start_date);
});
