import { expect, test } from "vitest";
import { type Json, aCustomer, aSubscription, anOrder, eventTypesOf, expectRefusal } from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();

const retry = (id: string) => sandbox.call("POST", `/v1/orders/${id}/retry`);

test("declined, declined, approved", async () => {
  const payer = await aCustomer(sandbox, "card_declined_twice");
  const order = await anOrder(sandbox, payer);
  expect(order.status).toBe("failed");
  const again = (await retry(order.id)).body;
  expect(again.status).toBe("failed");
  expect(again.transactions.map((t: Json) => t.attempt_count)).toEqual([1, 2]);
  const approved = (await retry(order.id)).body;
  expect(approved).toMatchObject({
    status: "succeeded",
    failure_code: null,
    failure_reason: null,
  });
  expect(approved.transactions.map((t: Json) => t.status)).toEqual(["failed", "failed", "succeeded"]);
  expect(await eventTypesOf(sandbox, order.id)).toEqual([
    "order.created",
    "order.failed",
    "order.failed",
    "order.succeeded",
  ]);
});

test("the order's own card is charged, whatever the default is now", async () => {
  const payer = await aCustomer(sandbox, "card_declined_once");
  const order = await anOrder(sandbox, payer);
  const path = `/v1/customers/${payer.id}/payment_methods`;
  await sandbox.ok("POST", path, { billing_id: "card_visa_declined", set_as_default: true });
  const retried = (await retry(order.id)).body;
  expect([retried.status, retried.payment_method.id]).toEqual(["succeeded", payer.default_payment_method_id]);
});

test("a card that is gone cannot be charged", async () => {
  const payer = await aCustomer(sandbox, "card_visa_declined");
  const order = await anOrder(sandbox, payer);
  const path = `/v1/customers/${payer.id}/payment_methods`;
  const other = await sandbox.ok("POST", path, { billing_id: "card_visa" });
  const body = { replacement_payment_method_id: other.id };
  await sandbox.ok("DELETE", `${path}/${payer.default_payment_method_id}`, body);
  expectRefusal(await retry(order.id), 400, "replacement_required");
  expect((await sandbox.ok("GET", `/v1/orders/${order.id}`)).transactions).toHaveLength(1);
});

test("a refund that fails again stays failed, with each attempt on record", async () => {
  const payer = await aCustomer(sandbox, "card_refund_failed");
  const order = await anOrder(sandbox, payer);
  await sandbox.ok("POST", `/v1/orders/${order.id}/refund`);
  const { status, body } = await retry(order.id);
  expect([status, body.status]).toEqual([200, "refund_failed"]);
  expect(body.transactions.map((t: Json) => [t.type, t.status])).toEqual([
    ["sale", "succeeded"],
    ["refund", "failed"],
    ["refund", "failed"],
  ]);
});

test("a paid first charge leaves its failed subscription failed", async () => {
  const payer = await aCustomer(sandbox, "card_declined_once");
  const subscription = await aSubscription(sandbox, payer);
  expect(subscription.status).toBe("failed");
  const { data } = await sandbox.ok("GET", `/v1/orders?customer_id=${payer.id}`);
  expect((await retry(data[0].id)).body.status).toBe("succeeded");
  const later = await sandbox.ok("GET", `/v1/subscriptions/${subscription.id}`);
  expect(later.status).toBe("failed");
});

test("a paid first charge is the first cycle, on the order, in the cycles and in the counts", async () => {
  const payer = await aCustomer(sandbox, "card_declined_twice");
  const { id } = await aSubscription(sandbox, payer);
  const { data } = await sandbox.ok("GET", `/v1/orders?customer_id=${payer.id}`);
  const path = `/v1/subscriptions/${id}?expand=cycles`;
  const declined = (await retry(data[0].id)).body;
  expect(declined).toMatchObject({ status: "failed", subscription_cycle: null });
  expect(await sandbox.ok("GET", path)).toMatchObject({
    attempt_count: 2,
    failure_reason: declined.failure_reason,
    current_billing_cycle: 0,
    cycles: [{ cycle: 1, status: "failed", order_id: declined.id }],
  });
  const paid = (await retry(data[0].id)).body;
  expect(paid).toMatchObject({ status: "succeeded", subscription_cycle: 1 });
  const subscription = await sandbox.ok("GET", path);
  const [cycle] = subscription.cycles;
  expect(subscription).toMatchObject({
    status: "failed",
    attempt_count: 0,
    failure_reason: null,
    current_billing_cycle: 1,
    next_billing_date: null,
    current_period_start: cycle.period_start,
    current_period_end: cycle.period_end,
    cycles: [{ cycle: 1, status: "succeeded", order_id: paid.id, amount: paid.total }],
  });
});

test("an unknown order is 404", async () => {
  expectRefusal(await retry(crypto.randomUUID()), 404, "resource_not_found");
});

test("an order of a canceled subscription is charged no more", async () => {
  const payer = await aCustomer(sandbox, "card_declined_once");
  const { id } = await aSubscription(sandbox, payer);
  await sandbox.ok("DELETE", `/v1/subscriptions/${id}`);
  const { data } = await sandbox.ok("GET", `/v1/orders?customer_id=${payer.id}`);
  expectRefusal(await retry(data[0].id), 400, "invalid_state_transition");
  expect((await sandbox.ok("GET", `/v1/orders/${data[0].id}`)).transactions).toHaveLength(1);
});

test.each(["pending", "partially_refunded"])("one that is %s cannot be retried", async (status) => {
  const { id } = await anOrder(sandbox, await aCustomer(sandbox));
  await sandbox.control("POST", "/silent", { resource: "orders", id, set: { status } });
  expectRefusal(await retry(id), 400, "invalid_state_transition");
  expect((await sandbox.ok("GET", `/v1/orders/${id}`)).transactions).toHaveLength(1);
});
