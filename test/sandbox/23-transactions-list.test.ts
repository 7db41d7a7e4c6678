import { afterAll, beforeAll, expect, test } from "vitest";
import { type Json, type TestSandbox, expectRefusal } from "./harness.ts";
import { startWithOrders } from "./order-history.ts";

let sandbox: TestSandbox;
let poor: Json;
let orders: Json[];
beforeAll(async () => {
  ({ sandbox, poor, orders } = await startWithOrders());
});
afterAll(() => sandbox.close());

/** One charged-back sale and one refund among the sales. */
beforeAll(async () => {
  await sandbox.control("POST", `/orders/${orders[1].id}/chargeback`);
  await sandbox.ok("POST", `/v1/orders/${orders[3].id}/refund`, {});
});

test("filters, and refuses unknown values", async () => {
  const get = (query: string) => sandbox.ok("GET", `/v1/transactions?limit=100&${query}`);
  const [order] = orders;
  expect((await get(`order_id=${order.id}`)).data).toHaveLength(1);
  expect((await get("order_id=nonsense")).data).toEqual([]);
  expect((await get(`customer_id=${poor.id}&status=failed&type=sale`)).data).toHaveLength(6);
  expect((await get("type=refund")).data).toHaveLength(1);
  expect((await get(`amount[gte]=${order.total}&amount[lte]=${order.total}`)).data.length).toBe(27);
  expect((await get("created_at[lt]=2026-03-01T00:01:00Z")).data).toHaveLength(12);
  for (const query of ["status=paid", "type=gift"]) {
    const called = await sandbox.call("GET", `/v1/transactions?${query}`);
    expectRefusal(called, 400, "invalid_value");
  }
});

test("expand embeds customer and order; charged-back sales are found whatever their age", async () => {
  await sandbox.control("POST", "/clock", { advance_seconds: 400 * 86_400 });
  const found = await sandbox.ok("GET", "/v1/transactions?status=chargeback&expand=order,customer");
  expect(found.data).toHaveLength(1);
  const [sale] = found.data;
  expect([sale.order.id, sale.customer.id]).toEqual([sale.order_id, sale.customer_id]);
  const one = await sandbox.ok("GET", `/v1/transactions/${sale.id}?expand=order`);
  expect(one.order.transactions[0].id).toBe(sale.id);
});
