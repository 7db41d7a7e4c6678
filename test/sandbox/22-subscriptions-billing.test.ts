import { beforeAll, describe, expect, test } from "vitest";
import { aPromo } from "./coupon-support.ts";
import { type Json, aCustomer, aSubscription, eventTypesOf, eventsOf, startTestSandbox } from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();
let customer: Json;
beforeAll(async () => {
  customer = await aCustomer(sandbox);
});

const get = (id: string) => sandbox.ok("GET", `/v1/subscriptions/${id}?expand=cycles`);
const ordersOf = async (id: string): Promise<Json[]> =>
  (await sandbox.control("GET", "/snapshot")).orders.filter((order: Json) => order.subscription_id === id);

const advanceDays = (days: number) => sandbox.control("POST", "/clock", { advance_seconds: days * 86_400 });

test("a renewal is one order with the next cycle, and announced", async () => {
  const subscription = await aSubscription(sandbox, customer, { plan: "box-weekly-setup-usd" });
  await advanceDays(7.5);
  const renewed = await get(subscription.id);
  expect(renewed.current_billing_cycle).toBe(2);
  expect(renewed.current_period_start).toBe(subscription.current_period_end);
  expect(Date.parse(renewed.next_billing_date) - Date.parse(subscription.next_billing_date)).toBe(7 * 86_400_000);
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

test("a jump over months bills each cycle once, in order", async () => {
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

test("after the last cycle it is completed and charged no more", async () => {
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

test("nothing is charged after the end date", async () => {
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

test("a renewal that is never paid: past_due, retried after 1, 3, 5, 7 days", async () => {
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
  const failures = (await eventsOf(sandbox, orders[1].id)).filter((event) => event.type === "order.failed");
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

test("a dunning retry that is approved makes it active; missed cycles follow", async () => {
  const payer = await aCustomer(sandbox, "card_renewal_declined_twice");
  const subscription = await aSubscription(sandbox, payer, { plan: "box-daily-usd" });
  await advanceDays(1.1);
  expect((await get(subscription.id)).status).toBe("past_due");
  await advanceDays(3.1);
  const recovered = await get(subscription.id);
  expect(recovered).toMatchObject({ status: "active", attempt_count: 0, next_retry_at: null });
  expect(recovered.failure_reason).toBeNull();
  const cycles = (await ordersOf(subscription.id)).map((order) => order.subscription_cycle);
  expect(cycles.toSorted((a: number, b: number) => a - b)).toEqual([1, 2, 3, 4, 5]);
  // Two were overdue at the moment of recovery: created in order, though in one instant.
  expect(recovered.cycles.map((cycle: Json) => cycle.cycle)).toEqual([1, 2, 3, 4, 5]);
  expect(recovered.cycles.every((cycle: Json) => cycle.status === "succeeded")).toBe(true);
  const charged = (await eventTypesOf(sandbox, subscription.id)).filter((type) => type === "subscription.charged");
  expect(charged).toHaveLength(4);
});

test("a retry by hand reconciles the cycle: the job charges it no more", async () => {
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

test("cancelling while past_due stops dunning", async () => {
  const payer = await aCustomer(sandbox, "card_renewal_declined");
  const subscription = await aSubscription(sandbox, payer, { plan: "box-daily-usd" });
  await advanceDays(1.1);
  await sandbox.ok("DELETE", `/v1/subscriptions/${subscription.id}`);
  await advanceDays(30);
  const [, renewal] = await ordersOf(subscription.id);
  expect(renewal.transactions).toHaveLength(1);
});

test("a card that replaced another is charged by the next renewal", async () => {
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

test("a paused one is not billed; a refunded renewal changes no status", async () => {
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

test("deleting a customer ends what is past due", async () => {
  const payer = await aCustomer(sandbox, "card_renewal_declined");
  const subscription = await aSubscription(sandbox, payer, { plan: "box-daily-usd" });
  await advanceDays(1.1);
  expect((await get(subscription.id)).status).toBe("past_due");
  await sandbox.ok("DELETE", `/v1/customers/${payer.id}`);
  expect((await get(subscription.id)).status).toBe("canceled");
});

test("also a decline that says the card is lost is retried, by the same schedule", async () => {
  const payer = await aCustomer(sandbox, "card_renewal_lost");
  const subscription = await aSubscription(sandbox, payer, { plan: "box-weekly-usd" });
  await advanceDays(7.1);
  const late = await get(subscription.id);
  expect(late.status).toBe("past_due");
  expect(late.next_retry_at).not.toBeNull();
  await advanceDays(1);
  const [, renewal] = await ordersOf(subscription.id);
  expect(renewal.failure_code).toBe("lost_stolen_card");
  expect(renewal.transactions).toHaveLength(2);
});

describe("coupons", () => {
  const discounts = async (id: string): Promise<unknown[]> =>
    (await ordersOf(id))
      .toSorted((a, b) => a.subscription_cycle - b.subscription_cycle)
      .map(({ subtotal, discount_amount, total, applied_coupon }) => {
        expect(total).toBe(subtotal - discount_amount);
        expect(applied_coupon?.discount_amount ?? 0).toBe(discount_amount);
        return discount_amount;
      });
  const subscribe = (coupon_code: string, more: object = {}) =>
    aSubscription(sandbox, customer, { plan: "box-weekly-usd", coupon_code, ...more });

  const durations: [string, Record<string, unknown>, number[]][] = [
    ["once", { duration: "once" }, [99, 0, 0, 0]],
    ["repeating 3", { duration: "repeating", duration_in_cycles: 3 }, [99, 99, 99, 0]],
    ["forever", { duration: "forever" }, [99, 99, 99, 99]],
  ];
  test.each(durations)("%s discounts its cycles", async (_name, terms, expected) => {
    const { code } = await aPromo(sandbox, { percentage: 10, ...terms });
    const { id } = await subscribe(code);
    await advanceDays(21.5);
    expect(await discounts(id)).toEqual(expected);
  });

  test("applied_coupon shows the first cycle's discount, setup fee included, for good", async () => {
    const { code } = await aPromo(sandbox, { percentage: 10, duration: "forever" });
    const created = await subscribe(code, { plan: "box-weekly-setup-usd" });
    expect(created.applied_coupon).toMatchObject({ code, percentage: 10, discount_amount: 249 });
    await advanceDays(7.5);
    expect(await discounts(created.id)).toEqual([249, 99]);
    expect((await get(created.id)).applied_coupon).toEqual(created.applied_coupon);
  });

  test("cycles after an edit, or the end, of the coupon follow the snapshot", async () => {
    const coupon = await aPromo(sandbox, {
      percentage: 50,
      max_discount_amount: 300,
      duration: "forever",
      max_redemptions: 1,
    });
    const { id } = await subscribe(coupon.code);
    await sandbox.ok("PATCH", `/v1/coupons/${coupon.id}`, { minimum_amount: 50_000 });
    await advanceDays(7.5);
    await sandbox.ok("DELETE", `/v1/coupons/${coupon.id}`);
    await advanceDays(7);
    expect(await discounts(id)).toEqual([300, 300, 300]);
    expect((await sandbox.ok("GET", `/v1/coupons/${coupon.id}`)).redemption_count).toBe(1);
  });

  test("a declined renewal is retried at its discounted price", async () => {
    const { code } = await aPromo(sandbox, { amount: 190, duration: "forever" });
    const payer = await aCustomer(sandbox, "card_renewal_declined_once");
    const { id } = await aSubscription(sandbox, payer, {
      plan: "box-weekly-usd",
      coupon_code: code,
    });
    await advanceDays(8.5);
    const [, renewal] = await ordersOf(id);
    expect(renewal.transactions.map((t: Json) => [t.status, t.amount])).toEqual([
      ["failed", 800],
      ["succeeded", 800],
    ]);
  });

  test("cycles that cost nothing are billed all the same", async () => {
    const { code } = await aPromo(sandbox, {
      percentage: 100,
      duration: "repeating",
      duration_in_cycles: 2,
    });
    const payer = await aCustomer(sandbox, "card_visa_declined");
    const { id, status } = await aSubscription(sandbox, payer, {
      plan: "box-weekly-usd",
      coupon_code: code,
    });
    expect(status).toBe("active");
    await advanceDays(15);
    expect(await discounts(id)).toEqual([990, 990, 0]);
    expect((await get(id)).status).toBe("past_due");
  });
});

test("one jump over 24 cycles of every cadence and anchor day bills each on its date", async () => {
  const own = await startTestSandbox();
  await own.control("POST", "/clock", { now: "2027-01-30T09:30:00Z" });
  const payer = await aCustomer(own);
  const cycles = 24;
  const anchors = [undefined, 1, 15, 28, 29, 30, 31];
  const cadences = [
    ...[1, 7, 14].map((interval_count) => ({ interval: "day", interval_count })),
    ...[1, 3, 12].flatMap((interval_count) =>
      anchors.map((anchor_day) => ({ interval: "month", interval_count, anchor_day })),
    ),
  ];
  const created: { id: string; expected: string[] }[] = [];
  for (const billing_cycle of cadences) {
    const { id } = await aSubscription(own, payer, { billing_cycle, billing_cycles: cycles });
    const dates = Array.from({ length: cycles }, (_, n) => dateOfCycle(billing_cycle, n));
    created.push({ id, expected: dates });
  }
  await own.control("POST", "/clock", { now: "2052-01-01T00:00:00Z" });
  const { orders, subscriptions } = await own.control("GET", "/snapshot");
  for (const { id, expected } of created) {
    const billed = orders.filter((order: Json) => order.subscription_id === id);
    expect(billed.map((order: Json) => order.created_at)).toEqual(expected);
    expect(subscriptions.find((found: Json) => found.id === id).status).toBe("completed");
  }
  await own.close();
});

/** When the n-th cycle (from 0) after 30 January 2027 is billed, told by the calendar and not by the code under test. */
function dateOfCycle(
  cycle: { interval: string; interval_count: number; anchor_day?: number | undefined },
  n: number,
): string {
  const steps = n * cycle.interval_count;
  if (n === 0) return "2027-01-30T09:30:00.000Z";
  if (cycle.interval === "day") {
    return new Date(Date.UTC(2027, 0, 30 + steps, 9, 30)).toISOString();
  }
  const lastDay = new Date(Date.UTC(2027, steps + 1, 0)).getUTCDate();
  const day = Math.min(cycle.anchor_day ?? 30, lastDay);
  return new Date(Date.UTC(2027, steps, day, 9, 30)).toISOString();
}
