import { beforeAll, expect, test } from "vitest";
import { type Json, aCustomer, anOrder, eventTypesOf, expectRefusal } from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();
let customer: Json;
beforeAll(async () => {
  customer = await aCustomer(sandbox);
});

const refund = (id: string, sent?: object) => sandbox.call("POST", `/v1/orders/${id}/refund`, sent);
const retry = (id: string) => sandbox.call("POST", `/v1/orders/${id}/retry`);

test("without an amount everything is given back", async () => {
  const order = await anOrder(sandbox, customer);
  const refunded = (await refund(order.id)).body;
  expect(refunded.status).toBe("refunded");
  expect(refunded.transactions[1]).toMatchObject({
    type: "refund",
    status: "succeeded",
    amount: order.total,
  });
  const { data } = await sandbox.ok("GET", `/v1/transactions?type=refund&order_id=${order.id}`);
  expect(data.map((t: Json) => t.id)).toEqual([refunded.transactions[1].id]);
  expect(await eventTypesOf(sandbox, order.id)).toEqual(["order.created", "order.succeeded", "order.refunded"]);
});

test("partial refunds add up and never exceed the total", async () => {
  const order = await anOrder(sandbox, customer);
  expect((await refund(order.id, { amount: 100 })).body.status).toBe("partially_refunded");
  expect((await refund(order.id, { amount: 200 })).body.status).toBe("partially_refunded");
  const beyond = await refund(order.id, { amount: order.total - 299 });
  expectRefusal(beyond, 400, "invalid_value", "amount");
  expect((await sandbox.ok("GET", `/v1/orders/${order.id}`)).transactions).toHaveLength(3);
  const last = (await refund(order.id)).body;
  expect(last.status).toBe("refunded");
  expect(last.transactions.at(-1).amount).toBe(order.total - 300);
  const exact = await anOrder(sandbox, customer);
  expect((await refund(exact.id, { amount: exact.total })).body.status).toBe("refunded");
});

test("amounts that are no positive number of cents are refused", async () => {
  const order = await anOrder(sandbox, customer);
  for (const amount of [0, -1, 1.5, "1", null]) {
    expectRefusal(await refund(order.id, { amount }), 400, "invalid_value", "amount");
  }
});

test("concurrent refunds give back no more than the total", async () => {
  const order = await anOrder(sandbox, customer);
  const amount = Math.ceil(order.total / 3);
  await Promise.all(Array.from({ length: 6 }, () => refund(order.id, { amount })));
  const { transactions } = await sandbox.ok("GET", `/v1/orders/${order.id}`);
  const given = transactions
    .filter((t: Json) => t.type === "refund")
    .reduce((sum: number, t: Json) => sum + t.amount, 0);
  expect(given).toBeLessThanOrEqual(order.total);
  expect(given).toBe(2 * amount);
});

test("other statuses can be neither refunded nor retried", async () => {
  const control = (id: string, move: string) => sandbox.control("POST", `/orders/${id}/${move}`);
  const make = async (...moves: string[]) => {
    const { id } = await anOrder(sandbox, customer);
    for (const move of moves) await control(id, move);
    return id as string;
  };
  const cases = [
    await make("void"),
    await make("chargeback"),
    await make("chargeback", "chargeback_accept"),
    await make("chargeback", "chargeback_dismiss"),
  ];
  const refunded = await make();
  await refund(refunded);
  for (const id of [...cases, refunded]) {
    expectRefusal(await refund(id), 400, "invalid_state_transition");
    expectRefusal(await retry(id), 400, "invalid_state_transition");
  }
  const poor = await aCustomer(sandbox, "card_visa_declined");
  const failed = await anOrder(sandbox, poor);
  expectRefusal(await refund(failed.id), 400, "invalid_state_transition");
  expectRefusal(await retry(await make()), 400, "invalid_state_transition");
});

test("a refund that fails can be retried", async () => {
  const payer = await aCustomer(sandbox, "card_refund_failed_once");
  const order = await anOrder(sandbox, payer);
  const failed = (await refund(order.id, { amount: 100 })).body;
  expect([failed.status, failed.transactions[1].status]).toEqual(["refund_failed", "failed"]);
  expectRefusal(await refund(order.id), 400, "invalid_state_transition");
  const retried = (await retry(order.id)).body;
  expect(retried.status).toBe("partially_refunded");
  expect(retried.transactions.map((t: Json) => [t.status, t.amount])).toEqual([
    ["succeeded", order.total],
    ["failed", 100],
    ["succeeded", 100],
  ]);
});

test("an unknown order is 404", async () => {
  expectRefusal(await refund(crypto.randomUUID()), 404, "resource_not_found");
});

test.each(["pending", "refund_failed", "voided"])("one that is %s cannot be refunded", async (status) => {
  const { id } = await anOrder(sandbox, customer);
  await sandbox.control("POST", "/silent", { resource: "orders", id, set: { status } });
  expectRefusal(await refund(id), 400, "invalid_state_transition");
  expect((await sandbox.ok("GET", `/v1/orders/${id}`)).transactions).toHaveLength(1);
});
