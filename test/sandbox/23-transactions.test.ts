import { expect, test } from "vitest";
import { transactionSchema } from "../../src/core/contract/resources/transactions.ts";
import { type Json, aCustomer, anOrder, expectRefusal } from "./harness.ts";
import { useSandbox } from "./support/use-sandbox.ts";

const sandbox = useSandbox();

test("agree with what the order shows inline", async () => {
  for (const token of ["card_visa", "card_incorrect_cvv"]) {
    const payer = await aCustomer(sandbox, token);
    const order = await anOrder(sandbox, payer);
    const [inline] = order.transactions;
    const sale = await sandbox.ok("GET", `/v1/transactions/${inline.id}`);
    expect(sale).toMatchObject({
      type: "sale",
      status: inline.status,
      amount: order.total,
      currency: order.currency,
      customer_id: payer.id,
      order_id: order.id,
      failure_reason: order.failure_reason,
      payment_method: order.payment_method,
    });
    expect(Object.keys(sale.processor_response).sort()).toEqual([
      "authorization_code",
      "avs_result",
      "cvv_result",
      "response_code",
      "response_text",
      "transaction_id",
    ]);
    expect(sale.processor_response.transaction_id).toBe(inline.processor_transaction_id);
  }
});

test("every attempt and every refund is a transaction of its own", async () => {
  const payer = await aCustomer(sandbox, "card_declined_once");
  const order = await anOrder(sandbox, payer);
  await sandbox.control("POST", "/clock", { advance_seconds: 60 });
  await sandbox.ok("POST", `/v1/orders/${order.id}/retry`);
  await sandbox.ok("POST", `/v1/orders/${order.id}/refund`, { amount: 300 });
  const { data } = await sandbox.ok("GET", `/v1/transactions?order_id=${order.id}`);
  const kinds = data.map((t: Json) => `${t.type} ${t.status} ${t.amount}`);
  expect(kinds.toSorted((a: string, b: string) => (a < b ? -1 : 1))).toEqual([
    "refund succeeded 300",
    `sale failed ${order.total}`,
    `sale succeeded ${order.total}`,
  ]);
  const sales = data.filter((t: Json) => t.type === "sale");
  expect(sales[0].created_at > sales[1].created_at).toBe(true);
});

test("they are read-only, and an unknown one is 404", async () => {
  const order = await anOrder(sandbox, await aCustomer(sandbox));
  const [{ id }] = order.transactions;
  const path = `/v1/transactions/${id}`;
  const before = await sandbox.ok("GET", path);
  for (const [method, called] of [
    ["POST", "/v1/transactions"],
    ["PATCH", path],
    ["DELETE", path],
  ] as const) {
    const refused = await sandbox.call(method, called, { amount: 1 });
    expect([404, 405]).toContain(refused.status);
  }
  expect(await sandbox.ok("GET", path)).toEqual(before);
  const unknown = await sandbox.call("GET", `/v1/transactions/${crypto.randomUUID()}`);
  expectRefusal(unknown, 404, "resource_not_found");
});

test("a transaction may have no order: the contract has room for holds, of which the sandbox makes none", async () => {
  const order = await anOrder(sandbox, await aCustomer(sandbox));
  const sale = await sandbox.ok("GET", `/v1/transactions/${order.transactions[0].id}`);
  const hold = { ...sale, type: "auth", order_id: null };
  expect(transactionSchema.safeParse(hold).success).toBe(true);
  expect((await sandbox.ok("GET", "/v1/transactions?type=auth")).data).toEqual([]);
});
