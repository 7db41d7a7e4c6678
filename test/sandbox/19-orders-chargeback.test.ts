import { beforeAll, expect, test } from "vitest";
import { type Json, aCustomer, anOrder, eventTypesOf, expectRefusal } from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();
let customer: Json;
beforeAll(async () => {
  customer = await aCustomer(sandbox);
});

const refund = (id: string, sent?: object) => sandbox.call("POST", `/v1/orders/${id}/refund`, sent);

test("the chargeback card is charged back some seconds later", async () => {
  const payer = await aCustomer(sandbox, "card_chargeback");
  const order = await anOrder(sandbox, payer);
  expect(order.status).toBe("succeeded");
  await sandbox.control("POST", "/clock", { advance_seconds: 6 });
  const charged = await sandbox.ok("GET", `/v1/orders/${order.id}`);
  expect([charged.status, charged.transactions[0].status]).toEqual(["chargeback", "chargeback"]);
  const sale = await sandbox.ok("GET", `/v1/transactions/${charged.transactions[0].id}`);
  expect(sale.status).toBe("chargeback");
  expect((await eventTypesOf(sandbox, order.id)).at(-1)).toBe("order.chargeback");
});

test("they are accepted or dismissed, under names that can be set", async () => {
  await sandbox.control("PUT", "/switches", { chargeback_events: { dismissed: "dispute.won" } });
  const order = await anOrder(sandbox, customer);
  await refund(order.id, { amount: 50 });
  const opened = await sandbox.control("POST", `/orders/${order.id}/chargeback`);
  expect(opened.transactions.map((t: Json) => t.status)).toEqual(["chargeback", "succeeded"]);
  const dismissed = await sandbox.control("POST", `/orders/${order.id}/chargeback_dismiss`);
  expect(dismissed.status).toBe("chargeback_dismissed");
  expect(dismissed.transactions[0].status).toBe("succeeded");
  expect(dismissed.updated_at > opened.updated_at).toBe(true);
  expect((await eventTypesOf(sandbox, order.id)).slice(-2)).toEqual(["order.chargeback", "dispute.won"]);
  const again = await fetch(`${sandbox.url}/_sandbox/orders/${order.id}/chargeback_accept`, {
    method: "POST",
  });
  expect(again.status).toBe(400);
  await sandbox.control("PUT", "/switches", { chargeback_events: {} });
});

test("a void takes order and sale back", async () => {
  const order = await anOrder(sandbox, customer);
  const voided = await sandbox.control("POST", `/orders/${order.id}/void`);
  expect([voided.status, voided.transactions[0].status]).toEqual(["voided", "voided"]);
});

test("a silent change moves updated_at and sends nothing", async () => {
  const order = await anOrder(sandbox, customer);
  const before = (await sandbox.control("GET", "")).events;
  const set = { description: "changed behind your back", status: "voided" };
  await sandbox.control("POST", "/silent", { resource: "orders", id: order.id, set });
  const changed = await sandbox.ok("GET", `/v1/orders/${order.id}`);
  expect(changed).toEqual({ ...order, ...set, updated_at: changed.updated_at });
  expect(changed.updated_at > order.updated_at).toBe(true);
  const [sale] = order.transactions;
  const fail = { resource: "transactions", id: sale.id, set: { status: "failed" } };
  await sandbox.control("POST", "/silent", fail);
  const inline = (await sandbox.ok("GET", `/v1/orders/${order.id}`)).transactions[0];
  expect(inline.status).toBe("failed");
  expect((await sandbox.control("GET", "")).events).toBe(before);
});

test("a silent change keeps objects usable: fixed fields, wrong types and nulls are refused", async () => {
  const { id } = await anOrder(sandbox, customer);
  for (const set of [{ id: "x" }, { total: "1" }, { status: null }, { nonsense: 1 }]) {
    const response = await fetch(`${sandbox.url}/_sandbox/silent`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ resource: "orders", id, set }),
    });
    expect(response.status).toBe(400);
  }
  const person = await aCustomer(sandbox);
  const set = { email: "silent@example.test" };
  await sandbox.control("POST", "/silent", { resource: "customers", id: person.id, set });
  const taken = await sandbox.call("POST", "/v1/customers", set);
  expectRefusal(taken, 409, "email_already_exists");
  await sandbox.ok("POST", "/v1/customers", { email: person.email });
});

test("an order that was free has no sale to charge back or to void", async () => {
  await sandbox.ok("POST", "/v1/coupons", {
    kind: "promo",
    name: "NOTHING",
    percentage: 100,
    duration: "once",
  });
  const order = await anOrder(sandbox, customer, { coupon_code: "NOTHING" });
  expect([order.status, order.total]).toEqual(["succeeded", 0]);
  for (const move of ["chargeback", "void"]) {
    const refused = await sandbox.tryControl("POST", `/orders/${order.id}/${move}`);
    expectRefusal(refused, 400, "invalid_state_transition");
  }
  expect((await sandbox.ok("GET", `/v1/orders/${order.id}`)).status).toBe("succeeded");
});
