import { afterAll, beforeAll, describe, expect, test } from "vitest";

import type { Json, TestSandbox } from "./harness.ts";
import {
  aCustomer,
  aPlan,
  aSubscription,
  eventsOf,
  eventTypesOf,
  expectRefusal,
  startTestSandbox,
} from "./harness.ts";

let sandbox: TestSandbox;
let customer: Json;
let body: Json;
beforeAll(async () => {
  sandbox = await startTestSandbox();
  customer = await aCustomer(sandbox);
  const plan = await aPlan(sandbox, "box-monthly-usd");
  body = {
    customer_id: customer.id,
    plan_id: plan.id,
    payment_method_id: customer.default_payment_method_id,
    billing_cycle: { interval: "month", interval_count: 1 },
  };
});
afterAll(() => sandbox.close());

const create = (change: object) =>
  sandbox.call("POST", "/v1/subscriptions", { ...body, ...change });
const get = (id: string) => sandbox.ok("GET", `/v1/subscriptions/${id}?expand=cycles`);
const ordersOf = async (id: string): Promise<Json[]> =>
  (await sandbox.control("GET", "/snapshot")).orders.filter(
    (order: Json) => order.subscription_id === id,
  );

describe("creation", () => {
  test("[S] 364 [S] 365 [S] 389 [S] 390 the first cycle is charged at once, with the setup fee", async () => {
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
    const [order] = await ordersOf(subscription.id);
    expect(order).toMatchObject({
      status: "succeeded",
      subscription_cycle: 1,
      total: plan.amount + plan.one_time_amount,
    });
    expect(await eventTypesOf(sandbox, subscription.id)).toEqual(["subscription.created"]);
  });

  test("[S] 366 [S] 367 [S] 515 a declined first charge makes a failed subscription that is never retried", async () => {
    const poor = await aCustomer(sandbox, "card_insufficient_funds");
    const subscription = await aSubscription(sandbox, poor);
    expect(subscription).toMatchObject({ status: "failed", next_billing_date: null });
    expect(subscription.failure_reason).toBeTruthy();
    const [order] = await ordersOf(subscription.id);
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
    expect(await ordersOf(subscription.id)).toHaveLength(1);
  });

  test.each(["customer_id", "plan_id", "payment_method_id", "billing_cycle"])(
    "[S] 368 %s is required",
    async (field) => {
      expectRefusal(await create({ [field]: undefined }), 400, "required_field", field);
    },
  );

  test("[S] 368 [S] 369 [A] 370 [S] 371 the billing cycle has its form", async () => {
    const cases: [object, string, string][] = [
      [{ interval_count: 1 }, "required_field", "billing_cycle.interval"],
      [{ interval: "month" }, "required_field", "billing_cycle.interval_count"],
      [{ interval: "week", interval_count: 1 }, "invalid_value", "billing_cycle.interval"],
      [{ interval: "day", interval_count: 0 }, "invalid_value", "billing_cycle.interval_count"],
      [{ interval: "day", interval_count: 1.5 }, "invalid_value", "billing_cycle.interval_count"],
      [
        { interval: "month", interval_count: 1, anchor_day: 0 },
        "invalid_value",
        "billing_cycle.anchor_day",
      ],
      [
        { interval: "month", interval_count: 1, anchor_day: 32 },
        "invalid_value",
        "billing_cycle.anchor_day",
      ],
      [
        { interval: "day", interval_count: 7, anchor_day: 3 },
        "invalid_value",
        "billing_cycle.anchor_day",
      ],
    ];
    for (const [billing_cycle, code, param] of cases) {
      expectRefusal(await create({ billing_cycle }), 400, code, param);
    }
  });

  test("[S] 372 signup_date equals leaving the anchor day out", async () => {
    const cycle = { interval: "month", interval_count: 1 };
    const named = await create({ billing_cycle: { ...cycle, anchor_day: "signup_date" } });
    const omitted = await create({ billing_cycle: cycle });
    expect(named.body.billing_cycle).toEqual(omitted.body.billing_cycle);
  });

  test("[S] 377 [S] 379 [S] 381 [S] 383 what does not fit creates nothing", async () => {
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
});

describe("list, update, cancel", () => {
  test("[S] 391 [A] 392 [A] 393 filters know five statuses; failed ones are listed without a filter", async () => {
    const poor = await aCustomer(sandbox, "card_expired");
    const failed = await aSubscription(sandbox, poor);
    const find = async (query: string) =>
      (await sandbox.ok("GET", `/v1/subscriptions?limit=100&${query}`)).data as Json[];
    expect((await find(`customer_id=${poor.id}`)).map(({ id }) => id)).toEqual([failed.id]);
    expect(await find(`customer_id=${poor.id}&status=active`)).toEqual([]);
    const active = await find("status=active");
    expect(active.length).toBeGreaterThan(0);
    expect(active.every(({ status }) => status === "active")).toBe(true);
    const byPlan = await find(`plan_id=${body.plan_id}`);
    expect(byPlan.every(({ plan }) => plan.id === body.plan_id)).toBe(true);
    const called = await sandbox.call("GET", "/v1/subscriptions?status=failed");
    expectRefusal(called, 400, "invalid_value", "status");
  });

  test("[S] 395 [S] 396 expand embeds customer, plan and cycles", async () => {
    const subscription = await aSubscription(sandbox, customer);
    expect(subscription.cycles).toBeUndefined();
    const path = `/v1/subscriptions/${subscription.id}?expand=customer,plan,cycles`;
    const expanded = await sandbox.ok("GET", path);
    expect(expanded.customer.id).toBe(customer.id);
    expect(expanded.plan.plan_code).toBe("box-monthly-usd");
    expect(expanded.cycles).toEqual([
      expect.objectContaining({ cycle: 1, status: "succeeded", amount: expanded.plan.amount }),
    ]);
  });

  test("[S] 398 [S] 403 only active and paused ones can be changed", async () => {
    const canceled = await aSubscription(sandbox, customer);
    await sandbox.ok("DELETE", `/v1/subscriptions/${canceled.id}`);
    const failed = await aSubscription(sandbox, await aCustomer(sandbox, "card_expired"));
    const single = await aSubscription(sandbox, customer, { billing_cycles: 1 });
    for (const { id } of [canceled, failed, single]) {
      const called = await sandbox.call("PATCH", `/v1/subscriptions/${id}`, {});
      expectRefusal(called, 400, "subscription_not_modifiable");
    }
    const active = await aSubscription(sandbox, customer);
    const set = { resource: "subscriptions", id: active.id, set: { status: "paused" } };
    await sandbox.control("POST", "/silent", set);
    const change = { status: "active", start_date: "2020-01-01", plan_id: "x" };
    const patched = await sandbox.ok("PATCH", `/v1/subscriptions/${active.id}`, change);
    expect([patched.status, patched.start_date]).toEqual(["paused", active.start_date]);
  });

  test("[S] 400 [S] 401 card and address are changed and announced", async () => {
    const subscription = await aSubscription(sandbox, customer);
    const path = `/v1/subscriptions/${subscription.id}`;
    const stranger = await aCustomer(sandbox);
    const foreign = { payment_method_id: stranger.default_payment_method_id };
    expectRefusal(await sandbox.call("PATCH", path, foreign), 404, "resource_not_found");
    const cards = `/v1/customers/${customer.id}/payment_methods`;
    const card = await sandbox.ok("POST", cards, { billing_id: "card_amex" });
    const changed = await sandbox.ok("PATCH", path, { payment_method_id: card.id });
    expect(changed.payment_method.card_brand).toBe("amex");
    expect((await eventTypesOf(sandbox, subscription.id)).slice(1)).toEqual([
      "subscription.updated",
    ]);
  });

  test("[S] 402 a changed billing cycle moves the next billing date", async () => {
    const subscription = await aSubscription(sandbox, customer);
    const path = `/v1/subscriptions/${subscription.id}`;
    const billing_cycle = { interval: "day", interval_count: 14 };
    const changed = await sandbox.ok("PATCH", path, { billing_cycle });
    const days =
      (Date.parse(changed.next_billing_date) - Date.parse(changed.current_period_start)) /
      86_400_000;
    expect(days).toBe(14);
    expect((await eventTypesOf(sandbox, subscription.id)).slice(1)).toEqual([
      "subscription.billing.updated",
      "subscription.updated",
    ]);
  });

  test("[S] 404 [S] 405 [S] 406 [A] 424 cancellation is at once and for good", async () => {
    const active = await aSubscription(sandbox, customer);
    const failed = await aSubscription(sandbox, await aCustomer(sandbox, "card_expired"));
    for (const { id } of [active, failed]) {
      const answer = await sandbox.ok("DELETE", `/v1/subscriptions/${id}`);
      expect(answer).toEqual({ id, status: "canceled", canceled_at: expect.any(String) });
      const again = await sandbox.call("DELETE", `/v1/subscriptions/${id}`);
      expectRefusal(again, 409, "already_canceled");
      expect((await get(id)).next_billing_date).toBeNull();
    }
    const before = (await ordersOf(active.id)).length;
    await sandbox.control("POST", "/clock", { advance_seconds: 70 * 86_400 });
    expect(await ordersOf(active.id)).toHaveLength(before);
    const types = await eventTypesOf(sandbox, active.id);
    expect(types.filter((type) => type === "subscription.canceled")).toHaveLength(1);
    const single = await aSubscription(sandbox, customer, { billing_cycles: 1 });
    const completed = await sandbox.call("DELETE", `/v1/subscriptions/${single.id}`);
    expectRefusal(completed, 409, "subscription_completed");
  });

  test("[S] 407 [S] 54 pause and resume are not implemented", async () => {
    const subscription = await aSubscription(sandbox, customer);
    for (const action of ["pause", "resume"]) {
      const called = await sandbox.call("POST", `/v1/subscriptions/${subscription.id}/${action}`);
      expectRefusal(called, 501, "not_implemented");
    }
    expect((await get(subscription.id)).status).toBe("active");
  });
});

describe("billing", () => {
  const advanceDays = (days: number) =>
    sandbox.control("POST", "/clock", { advance_seconds: days * 86_400 });

  test("[S] 410 [S] 411 [A] 412 a renewal is one order with the next cycle, and announced", async () => {
    const subscription = await aSubscription(sandbox, customer, { plan: "box-weekly-setup-usd" });
    await advanceDays(7.5);
    const renewed = await get(subscription.id);
    expect(renewed.current_billing_cycle).toBe(2);
    expect(renewed.current_period_start).toBe(subscription.current_period_end);
    expect(Date.parse(renewed.next_billing_date) - Date.parse(subscription.next_billing_date)).toBe(
      7 * 86_400_000,
    );
    const orders = await ordersOf(subscription.id);
    expect(orders.map((order) => [order.subscription_cycle, order.total])).toEqual([
      [1, 990 + 1500],
      [2, 990],
    ]);
    expect(orders[1].created_at).toBe(subscription.next_billing_date);
    expect(await eventTypesOf(sandbox, orders[1].id)).toEqual(["order.created", "order.succeeded"]);
    expect((await eventTypesOf(sandbox, subscription.id)).at(-1)).toBe("subscription.charged");
    await advanceDays(0.1);
    expect(await ordersOf(subscription.id)).toHaveLength(2);
  });

  test("[A] 413 [S] 423 a jump over months bills each cycle once, in order", async () => {
    const subscription = await aSubscription(sandbox, customer, {
      billing_cycle: { interval: "month", interval_count: 1, anchor_day: 31 },
    });
    await advanceDays(366);
    const renewed = await get(subscription.id);
    const orders = await ordersOf(subscription.id);
    expect(orders.map((order) => order.subscription_cycle)).toEqual(
      Array.from({ length: renewed.current_billing_cycle }, (_, i) => i + 1),
    );
    expect(orders.length).toBeGreaterThanOrEqual(12);
    for (const order of orders.slice(1)) {
      const next = new Date(Date.parse(order.created_at) + 86_400_000);
      expect(next.getUTCDate()).toBe(1);
    }
    expect(renewed.status).toBe("active");
  });

  test("[S] 376 [S] 422 after the last cycle it is completed and charged no more", async () => {
    const subscription = await aSubscription(sandbox, customer, {
      plan: "box-daily-usd",
      billing_cycles: 3,
    });
    expect(subscription).toMatchObject({ status: "active", total_billing_cycles: 3 });
    await advanceDays(1.1);
    expect((await get(subscription.id)).status).toBe("active");
    await advanceDays(10);
    expect(await get(subscription.id)).toMatchObject({
      status: "completed",
      current_billing_cycle: 3,
      next_billing_date: null,
    });
    expect(await ordersOf(subscription.id)).toHaveLength(3);
  });

  test("[S] 377 [A] 378 nothing is charged after the end date", async () => {
    const { now } = (await sandbox.control("GET", "")).clock;
    const end_date = new Date(Date.parse(now) + 16 * 86_400_000).toISOString().slice(0, 10);
    const subscription = await aSubscription(sandbox, customer, {
      plan: "box-weekly-usd",
      end_date,
    });
    await advanceDays(40);
    expect(await get(subscription.id)).toMatchObject({
      status: "completed",
      next_billing_date: null,
    });
    expect(await ordersOf(subscription.id)).toHaveLength(3);
  });

  test("[S] 414 [S] 416 [A] 417 [A] 418 [S] 415 a renewal that is never paid: past_due, retried after 1, 3, 5, 7 days", async () => {
    const payer = await aCustomer(sandbox, "card_renewal_declined");
    const subscription = await aSubscription(sandbox, payer, { plan: "box-weekly-usd" });
    const due = Date.parse(subscription.next_billing_date);
    await advanceDays(7.1);
    const late = await get(subscription.id);
    expect(late).toMatchObject({ status: "past_due", attempt_count: 1, current_billing_cycle: 1 });
    expect(Date.parse(late.next_retry_at) - due).toBe(86_400_000);
    await advanceDays(60);
    const lost = await get(subscription.id);
    expect(lost).toMatchObject({ status: "past_due", attempt_count: 5, next_retry_at: null });
    const orders = await ordersOf(subscription.id);
    expect(orders.map((order) => order.subscription_cycle)).toEqual([1, 2]);
    const failures = (await eventsOf(sandbox, orders[1].id)).filter(
      (event) => event.type === "order.failed",
    );
    const days = failures.map(({ data: { object } }) => [
      object.attempt_count,
      object.next_retry_at === null ? null : (Date.parse(object.next_retry_at) - due) / 86_400_000,
    ]);
    expect(days).toEqual([
      [1, 1],
      [2, 3],
      [3, 5],
      [4, 7],
      [5, null],
    ]);
    expect(failures.every(({ data }) => data.object.subscription_cycle === 2)).toBe(true);
    const types = await eventTypesOf(sandbox, subscription.id);
    expect(types).not.toContain("subscription.payment_failed");
  });

  test("[A] 419 [S] 349 a dunning retry that is approved makes it active; missed cycles follow", async () => {
    const payer = await aCustomer(sandbox, "card_renewal_declined_twice");
    const subscription = await aSubscription(sandbox, payer, { plan: "box-daily-usd" });
    await advanceDays(1.1);
    expect((await get(subscription.id)).status).toBe("past_due");
    await advanceDays(3.1);
    const recovered = await get(subscription.id);
    expect(recovered).toMatchObject({ status: "active", attempt_count: 0, next_retry_at: null });
    expect(recovered.failure_reason).toBeNull();
    const cycles = (await ordersOf(subscription.id)).map((order) => order.subscription_cycle);
    expect(cycles).toEqual([1, 2, 3, 4, 5]);
    expect(recovered.cycles.every((cycle: Json) => cycle.status === "succeeded")).toBe(true);
    const charged = (await eventTypesOf(sandbox, subscription.id)).filter(
      (type) => type === "subscription.charged",
    );
    expect(charged).toHaveLength(4);
  });

  test("[S] 349 [A] 350 a retry by hand reconciles the cycle: the job charges it no more", async () => {
    const payer = await aCustomer(sandbox, "card_renewal_declined_once");
    const subscription = await aSubscription(sandbox, payer, { plan: "box-weekly-usd" });
    await advanceDays(7.1);
    const [, renewal] = await ordersOf(subscription.id);
    const retried = await sandbox.ok("POST", `/v1/orders/${renewal.id}/retry`);
    expect(retried.status).toBe("succeeded");
    expect(await get(subscription.id)).toMatchObject({
      status: "active",
      current_billing_cycle: 2,
    });
    await advanceDays(3);
    expect(await ordersOf(subscription.id)).toHaveLength(2);
  });

  test("[A] 424 cancelling while past_due stops dunning", async () => {
    const payer = await aCustomer(sandbox, "card_renewal_declined");
    const subscription = await aSubscription(sandbox, payer, { plan: "box-daily-usd" });
    await advanceDays(1.1);
    await sandbox.ok("DELETE", `/v1/subscriptions/${subscription.id}`);
    await advanceDays(30);
    const [, renewal] = await ordersOf(subscription.id);
    expect(renewal.transactions).toHaveLength(1);
  });

  test("[S] 421 a card that replaced another is charged by the next renewal", async () => {
    const payer = await aCustomer(sandbox);
    const subscription = await aSubscription(sandbox, payer, { plan: "box-daily-usd" });
    const cards = `/v1/customers/${payer.id}/payment_methods`;
    const next = await sandbox.ok("POST", cards, { billing_id: "card_discover" });
    const body_ = { replacement_payment_method_id: next.id };
    await sandbox.ok("DELETE", `${cards}/${payer.default_payment_method_id}`, body_);
    await advanceDays(1.1);
    const [, renewal] = await ordersOf(subscription.id);
    expect(renewal.payment_method.card_brand).toBe("discover");
  });

  test("[A] 409 [A] 425 a paused one is not billed; a refunded renewal changes no status", async () => {
    const paused = await aSubscription(sandbox, customer, { plan: "box-daily-usd" });
    const set = { resource: "subscriptions", id: paused.id, set: { status: "paused" } };
    await sandbox.control("POST", "/silent", set);
    const running = await aSubscription(sandbox, customer, { plan: "box-daily-usd" });
    await advanceDays(1.1);
    expect(await ordersOf(paused.id)).toHaveLength(1);
    const [, renewal] = await ordersOf(running.id);
    await sandbox.ok("POST", `/v1/orders/${renewal.id}/refund`);
    expect((await get(running.id)).status).toBe("active");
  });

  test("a switch announces the changes of status that have no event", async () => {
    await sandbox.control("PUT", "/switches", { subscription_status_events: true });
    const payer = await aCustomer(sandbox, "card_renewal_declined");
    const subscription = await aSubscription(sandbox, payer, { plan: "box-daily-usd" });
    await advanceDays(1.1);
    const last = (await eventsOf(sandbox, subscription.id)).at(-1);
    expect([last.type, last.data.object.status]).toEqual(["subscription.updated", "past_due"]);
    await sandbox.control("PUT", "/switches", { subscription_status_events: false });
  });

  test("[A] 192 deleting a customer ends what is past due", async () => {
    const payer = await aCustomer(sandbox, "card_renewal_declined");
    const subscription = await aSubscription(sandbox, payer, { plan: "box-daily-usd" });
    await advanceDays(1.1);
    expect((await get(subscription.id)).status).toBe("past_due");
    await sandbox.ok("DELETE", `/v1/customers/${payer.id}`);
    expect((await get(subscription.id)).status).toBe("canceled");
  });
});
