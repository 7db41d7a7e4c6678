import { afterAll, beforeAll, expect, test } from "vitest";
import { type Json, type TestSandbox, expectRefusal } from "./harness.ts";
import { idsOf, startWithOrders, walkList } from "./order-history.ts";

let sandbox: TestSandbox;
let poor: Json;
let orders: Json[];
beforeAll(async () => {
  ({ sandbox, poor, orders } = await startWithOrders());
});
afterAll(() => sandbox.close());

const list = (query: string) => sandbox.ok("GET", `/v1/orders?${query}`);
const walk = (path: string, query: string) => walkList(sandbox, path, query);

test("filters by customer and by an inclusive range of the total", async () => {
  const { total } = orders[0];
  expect((await list(`customer_id=${poor.id}&limit=100`)).data).toHaveLength(6);
  expect((await list(`total[gte]=${total}&total[lte]=${total}&limit=100`)).data).toHaveLength(26);
  expect((await list(`total[gte]=${total + 1}`)).data).toEqual([]);
  expect((await list(`total[lte]=${total - 1}`)).data).toEqual([]);
});

test("status takes a comma list", async () => {
  const failed = await walk("orders", "limit=3&status=failed");
  const paid = await walk("orders", "limit=3&status=succeeded,refunded");
  const union = await walk("orders", "limit=3&status=failed,succeeded,refunded");
  expect(union).toHaveLength(26);
  expect(new Set([...failed, ...paid])).toEqual(new Set(union));
  expectRefusal(await sandbox.call("GET", "/v1/orders?status=paid"), 400, "invalid_value");
});

test("four statuses cannot be filtered by, and are listed without a filter", async () => {
  for (const status of ["chargeback", "chargeback_accepted", "chargeback_dismissed", "refund_failed"]) {
    const called = await sandbox.call("GET", `/v1/orders?status=succeeded,${status}`);
    expectRefusal(called, 400, "invalid_value", "status");
  }
  const { id } = orders[1];
  await sandbox.control("POST", `/orders/${id}/chargeback`);
  const listed = await list("limit=100");
  expect(listed.data.find((order: Json) => order.id === id).status).toBe("chargeback");
  await sandbox.control("PUT", "/switches", { unfilterable_order_statuses: "accepted" });
  expect(idsOf(await list("status=chargeback"))).toEqual([id]);
  await sandbox.control("PUT", "/switches", { unfilterable_order_statuses: "refused" });
});

test("there is no filter on updated_at", async () => {
  const all = await list("limit=100&updated_at[gte]=2099-01-01T00:00:00Z");
  expect(all.data).toHaveLength(26);
});
