import { beforeAll, expect, test } from "vitest";
import { type Json, aCustomer, aSubscription, anOrder, expectRefusal } from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

/* The list is tested in 16-orders-list.test.ts. */

const sandbox = useSandbox();
let customer: Json;
beforeAll(async () => {
  customer = await aCustomer(sandbox);
});

test("retrieve expands the customer, and no more than it documents", async () => {
  const order = await anOrder(sandbox, customer);
  const path = `/v1/orders/${order.id}`;
  const expanded = await sandbox.ok("GET", `${path}?expand=customer,transactions`);
  expect(expanded).toEqual({ ...order, customer: expanded.customer });
  expect(expanded.customer.id).toBe(customer.id);
  expectRefusal(await sandbox.call("GET", `${path}?expand=items`), 400, "invalid_value", "expand");
});

test("charges of a subscription are orders, with its id and their cycle", async () => {
  const subscription = await aSubscription(sandbox, customer, { plan: "box-daily-usd" });
  await sandbox.control("POST", "/clock", { advance_seconds: 2.5 * 86_400 });
  const { data } = await sandbox.ok("GET", `/v1/orders?customer_id=${customer.id}&limit=100`);
  const charges = data.filter((order: Json) => order.subscription_id === subscription.id);
  expect(charges.map((order: Json) => order.subscription_cycle)).toEqual([3, 2, 1]);
});

test("an unknown id is 404", async () => {
  for (const id of [crypto.randomUUID(), "not-a-uuid"]) {
    expectRefusal(await sandbox.call("GET", `/v1/orders/${id}`), 404, "resource_not_found");
  }
});

test("updated_at moves with every change and never falls", async () => {
  const { id, updated_at } = await anOrder(sandbox, customer);
  const stamps = [
    updated_at,
    (await sandbox.ok("POST", `/v1/orders/${id}/refund`, { amount: 1 })).updated_at,
    (await sandbox.control("POST", `/orders/${id}/chargeback`)).updated_at,
    (await sandbox.control("POST", `/orders/${id}/chargeback_dismiss`)).updated_at,
  ];
  expect(new Set(stamps).size).toBe(4);
  expect(stamps.toSorted((a, b) => (a < b ? -1 : 1))).toEqual(stamps);
});
