import { beforeAll, expect, test } from "vitest";
import { type Json, aCustomer, aPlan, aSubscription, eventTypesOf, expectRefusal, productsOf } from "./harness.ts";
import { ordersOf, subscriptionBody } from "./support/request-bodies.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();
let customer: Json;
let body: Json;
beforeAll(async () => {
  customer = await aCustomer(sandbox);
  body = await subscriptionBody(sandbox, customer);
});

const get = (id: string) => sandbox.ok("GET", `/v1/subscriptions/${id}?expand=cycles`);

const statuses = ["active", "paused", "past_due", "failed", "canceled", "completed"] as const;

/** A subscription that came into a status, by calls and by time; `paused` has no way but the control. */
async function aSubscriptionThatIs(status: (typeof statuses)[number]): Promise<Json> {
  const tokens = { failed: "card_expired", past_due: "card_renewal_declined" };
  const token = status === "failed" || status === "past_due" ? tokens[status] : "card_visa";
  const payer = await aCustomer(sandbox, token);
  const single = status === "completed" ? { billing_cycles: 1 } : {};
  const { id } = await aSubscription(sandbox, payer, { plan: "box-weekly-usd", ...single });
  if (status === "past_due") {
    await sandbox.control("POST", "/clock", { advance_seconds: 7.1 * 86_400 });
  }
  if (status === "canceled") await sandbox.ok("DELETE", `/v1/subscriptions/${id}`);
  if (status === "paused") {
    await sandbox.control("POST", "/silent", { resource: "subscriptions", id, set: { status } });
  }
  const subscription = await get(id);
  expect(subscription.status).toBe(status);
  return subscription;
}

test.each(["active", "paused", "past_due", "canceled", "completed"] as const)(
  "the list filters by %s",
  async (status) => {
    const { id } = await aSubscriptionThatIs(status);
    const { data } = await sandbox.ok("GET", `/v1/subscriptions?limit=100&status=${status}`);
    expect(data.map((found: Json) => found.id)).toContain(id);
    expect(data.every((found: Json) => found.status === status)).toBe(true);
  },
);

test.each(["past_due", "failed", "canceled", "completed"] as const)(
  "one that is %s cannot be changed",
  async (status) => {
    const before = await aSubscriptionThatIs(status);
    const change = { payment_method_id: before.payment_method.id };
    const refused = await sandbox.call("PATCH", `/v1/subscriptions/${before.id}`, change);
    expectRefusal(refused, 400, "subscription_not_modifiable");
    expect(await get(before.id)).toEqual(before);
  },
);

test.each(["active", "paused", "past_due", "failed"] as const)("one that is %s is canceled at once", async (status) => {
  const { id } = await aSubscriptionThatIs(status);
  const answer = await sandbox.ok("DELETE", `/v1/subscriptions/${id}`);
  expect(answer).toEqual({ id, status: "canceled", canceled_at: expect.any(String) });
  expect(await get(id)).toMatchObject({ status: "canceled", next_billing_date: null });
});

test.each(statuses)("pausing and resuming change nothing when %s", async (status) => {
  const before = await aSubscriptionThatIs(status);
  for (const action of ["pause", "resume"]) {
    const called = await sandbox.call("POST", `/v1/subscriptions/${before.id}/${action}`);
    expectRefusal(called, 501, "not_implemented");
  }
  expect(await get(before.id)).toEqual(before);
});

test("the filter knows five statuses; failed ones are listed without a filter", async () => {
  const poor = await aCustomer(sandbox, "card_expired");
  const failed = await aSubscription(sandbox, poor);
  await aSubscription(sandbox, customer);
  const find = async (query: string) =>
    (await sandbox.ok("GET", `/v1/subscriptions?limit=100&${query}`)).data as Json[];
  expect((await find(`customer_id=${poor.id}`)).map(({ id }) => id)).toEqual([failed.id]);
  expect(await find(`customer_id=${poor.id}&status=active`)).toEqual([]);
  const active = await find("status=active");
  expect(active.length).toBeGreaterThan(0);
  expect(active.every(({ status }) => status === "active")).toBe(true);
  const byPlan = await find(`plan_id=${body.plan_id}`);
  expect(byPlan.length).toBeGreaterThan(0);
  expect(byPlan.every(({ plan }) => plan.id === body.plan_id)).toBe(true);
  const called = await sandbox.call("GET", "/v1/subscriptions?status=failed");
  expectRefusal(called, 400, "invalid_value", "status");
});

test("expand embeds customer, plan and cycles", async () => {
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

test("only active and paused ones can be changed", async () => {
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

test("card and address are changed and announced", async () => {
  const subscription = await aSubscription(sandbox, customer);
  const path = `/v1/subscriptions/${subscription.id}`;
  const stranger = await aCustomer(sandbox);
  const foreign = { payment_method_id: stranger.default_payment_method_id };
  expectRefusal(await sandbox.call("PATCH", path, foreign), 404, "resource_not_found");
  const cards = `/v1/customers/${customer.id}/payment_methods`;
  const card = await sandbox.ok("POST", cards, { billing_id: "card_amex" });
  const changed = await sandbox.ok("PATCH", path, { payment_method_id: card.id });
  expect(changed.payment_method.card_brand).toBe("amex");
  expect((await eventTypesOf(sandbox, subscription.id)).slice(1)).toEqual(["subscription.updated"]);
});

test("a changed billing cycle moves the next billing date", async () => {
  const subscription = await aSubscription(sandbox, customer);
  const path = `/v1/subscriptions/${subscription.id}`;
  const billing_cycle = { interval: "day", interval_count: 14 };
  const changed = await sandbox.ok("PATCH", path, { billing_cycle });
  const days = (Date.parse(changed.next_billing_date) - Date.parse(changed.current_period_start)) / 86_400_000;
  expect(days).toBe(14);
  expect((await eventTypesOf(sandbox, subscription.id)).slice(1)).toEqual([
    "subscription.billing.updated",
    "subscription.updated",
  ]);
});

test("cancellation is at once and for good", async () => {
  const active = await aSubscription(sandbox, customer);
  const failed = await aSubscription(sandbox, await aCustomer(sandbox, "card_expired"));
  for (const { id } of [active, failed]) {
    const answer = await sandbox.ok("DELETE", `/v1/subscriptions/${id}`);
    expect(answer).toEqual({ id, status: "canceled", canceled_at: expect.any(String) });
    const again = await sandbox.call("DELETE", `/v1/subscriptions/${id}`);
    expectRefusal(again, 409, "already_canceled");
    expect((await get(id)).next_billing_date).toBeNull();
  }
  const before = (await ordersOf(sandbox, active.id)).length;
  await sandbox.control("POST", "/clock", { advance_seconds: 70 * 86_400 });
  expect(await ordersOf(sandbox, active.id)).toHaveLength(before);
  const types = await eventTypesOf(sandbox, active.id);
  expect(types.filter((type) => type === "subscription.canceled")).toHaveLength(1);
  const single = await aSubscription(sandbox, customer, { billing_cycles: 1 });
  const completed = await sandbox.call("DELETE", `/v1/subscriptions/${single.id}`);
  expectRefusal(completed, 409, "subscription_completed");
});

test("there is no created_at filter", async () => {
  const all = (await sandbox.ok("GET", "/v1/subscriptions?limit=100")).data;
  const query = "limit=100&created_at[gte]=2099-01-01T00:00:00Z";
  expect((await sandbox.ok("GET", `/v1/subscriptions?${query}`)).data).toEqual(all);
});

test("an unknown id is 404, whatever is asked of it", async () => {
  const path = `/v1/subscriptions/${crypto.randomUUID()}`;
  for (const [method, called] of [
    ["GET", path],
    ["PATCH", path],
    ["DELETE", path],
    ["POST", `${path}/pause`],
    ["POST", `${path}/resume`],
  ] as const) {
    const body = method === "PATCH" ? {} : undefined;
    expectRefusal(await sandbox.call(method, called, body), 404, "resource_not_found");
  }
});

test("PATCH takes its five fields and looks at no other", async () => {
  const subscription = await aSubscription(sandbox, customer);
  const path = `/v1/subscriptions/${subscription.id}`;
  const others = { end_date: "2099-01-01", billing_cycles: 3, coupon_code: "X", customer_id: "y" };
  expect(await sandbox.ok("PATCH", path, others)).toEqual(subscription);
  const shipping_address = {
    first_name: "Ada",
    last_name: "Lovelace",
    address_line1: "1 Main Street",
    city: "Boston",
    state: "MA",
    postal_code: "02108",
    country: "US",
  };
  const moved = await sandbox.ok("PATCH", path, { shipping_address });
  expect(moved.shipping_address).toMatchObject(shipping_address);
  const again = { shipping_address_id: moved.shipping_address.id, shipping_option_id: "express" };
  expect((await sandbox.ok("PATCH", path, again)).shipping_address).toEqual(moved.shipping_address);
});

test("an address of another customer is unknown to orders and subscriptions", async () => {
  const place = {
    address_line1: "1 Main Street",
    city: "Boston",
    state: "MA",
    postal_code: "02108",
    country: "US",
  };
  const owner = await sandbox.ok("POST", "/v1/customers", {
    email: "owner@example.test",
    shipping_address: { full_name: "Ada Lovelace", ...place },
    svc_gateway_customer_vault_id: "card_visa",
  });
  const shipping_address_id = owner.shipping_address.id;
  const other = await aCustomer(sandbox);
  const subscription = await aSubscription(sandbox, other);
  const [product] = await productsOf(sandbox);
  const order = (buyer: Json) => ({
    customer_id: buyer.id,
    payment_method_id: buyer.default_payment_method_id,
    items: [{ product_id: product.id, quantity: 1 }],
    shipping_address_id,
  });
  const plan = await aPlan(sandbox, "box-monthly-usd");
  const { items: _items, ...parties } = order(other);
  for (const [method, path, body] of [
    ["POST", "/v1/orders", order(other)],
    ["PATCH", `/v1/subscriptions/${subscription.id}`, { shipping_address_id }],
    [
      "POST",
      "/v1/subscriptions",
      { ...parties, plan_id: plan.id, billing_cycle: { interval: "month", interval_count: 1 } },
    ],
  ] as const) {
    const called = await sandbox.call(method, path, body);
    expectRefusal(called, 404, "resource_not_found", "shipping_address_id");
  }
  const own = await sandbox.ok("POST", "/v1/orders", order(owner));
  expect(own.shipping_address).toMatchObject({ id: shipping_address_id, ...place });
});
