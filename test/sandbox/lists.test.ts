import { afterAll, beforeAll, describe, expect, test } from "vitest";

import type { Json, TestSandbox } from "./harness.ts";
import { aCustomer, anOrder, expectRefusal, startTestSandbox } from "./harness.ts";

let sandbox: TestSandbox;
let rich: Json;
let poor: Json;
const orders: Json[] = [];

beforeAll(async () => {
  sandbox = await startTestSandbox();
  // A stopped clock: all orders of a group share one instant.
  await sandbox.control("POST", "/clock", { now: "2026-03-01T00:00:00Z" });
  rich = await aCustomer(sandbox);
  poor = await aCustomer(sandbox, "card_insufficient_funds");
  for (let i = 0; i < 26; i++) {
    if (i === 12) await sandbox.control("POST", "/clock", { advance_seconds: 60 });
    orders.push(await anOrder(sandbox, i % 5 === 0 ? poor : rich));
  }
});
afterAll(() => sandbox.close());

const ids = (page: Json) => page.data.map((item: Json) => item.id as string);
const list = (query: string) => sandbox.ok("GET", `/v1/orders?${query}`);

async function walk(path: string, query: string): Promise<string[]> {
  const seen: string[] = [];
  let cursor = "";
  for (;;) {
    const page = await sandbox.ok("GET", `/v1/${path}?${query}${cursor}`);
    seen.push(...ids(page));
    if (!page.has_more) {
      expect(page.cursors.next).toBeNull();
      return seen;
    }
    expect(page.cursors.next).toBe(seen.at(-1));
    cursor = `&starting_after=${page.cursors.next}`;
  }
}

describe("pages", () => {
  test("[S] 116 [S] 117 [S] 118 a list has its shape, ten items, newest first", async () => {
    const page = await list("");
    expect(page.url).toBe("/v1/orders");
    expect(page.data).toHaveLength(10);
    expect(page.has_more).toBe(true);
    const times = page.data.map((order: Json) => order.created_at);
    expect(times).toEqual(times.toSorted().toReversed());
  });

  test("[S] 123 [S] 125 [A] 119 [A] 133 walks give every order once at every limit, ties included", async () => {
    const all = orders.map((order) => order.id as string).toSorted();
    for (let limit = 1; limit <= 25; limit++) {
      expect((await walk("orders", `limit=${limit}`)).toSorted()).toEqual(all);
    }
    const newestFirst = await walk("orders", "limit=7");
    const oldestFirst = await walk("orders", "limit=4&sort=created_at[asc]");
    expect(oldestFirst).toEqual(newestFirst.toReversed());
  });

  test("[S] 124 ending_before pages backward, in list order", async () => {
    const all = await walk("orders", "limit=100");
    const back = await list(`limit=5&ending_before=${all[12]}`);
    expect(ids(back)).toEqual(all.slice(7, 12));
    expect(back.has_more).toBe(true);
    const first = await list(`limit=5&ending_before=${all[3]}`);
    expect(ids(first)).toEqual(all.slice(0, 3));
    expect(first.has_more).toBe(false);
  });

  test("[A] 121 [A] 122 limits below 1 are refused, those above the maximum clamped or refused", async () => {
    for (const limit of ["0", "-1", "x", "1.5", ""]) {
      const called = await sandbox.call("GET", `/v1/orders?limit=${limit}`);
      expect([called.status, called.body.error.param]).toEqual([400, "limit"]);
    }
    await sandbox.control("PUT", "/switches", { maximum_page_size: 20 });
    expect((await list("limit=500")).data).toHaveLength(20);
    await sandbox.control("PUT", "/switches", { limit_above_maximum: "refused" });
    expectRefusal(await sandbox.call("GET", "/v1/orders?limit=21"), 400, "invalid_value", "limit");
    await sandbox.control("PUT", "/switches", {
      maximum_page_size: 100,
      limit_above_maximum: "clamped",
    });
  });

  test("[A] 128 [A] 129 cursors are one, and known", async () => {
    const id = orders[0].id;
    const both = await sandbox.call("GET", `/v1/orders?starting_after=${id}&ending_before=${id}`);
    expectRefusal(both, 400, "invalid_value");
    const unknown = await sandbox.call("GET", "/v1/orders?starting_after=nonsense");
    expectRefusal(unknown, 400, "invalid_value", "starting_after");
  });

  test("[A] 131 a cursor that does not match the filter still has its place", async () => {
    const all = await walk("orders", "limit=100");
    const failed = new Set(await walk("orders", "limit=100&status=failed"));
    const at = all.findIndex((id) => !failed.has(id));
    const page = await list(`limit=100&status=failed&starting_after=${all[at]}`);
    expect(ids(page)).toEqual(all.slice(at + 1).filter((id) => failed.has(id)));
  });

  test("[S] 135 [A] 136 sort takes both forms and no unknown field", async () => {
    expect(ids(await list("sort=-created_at"))).toEqual(ids(await list("sort=created_at[desc]")));
    for (const sort of ["color", "created_at[up]", "total", "constructor"]) {
      const called = await sandbox.call("GET", `/v1/orders?sort=${sort}`);
      expect([called.status, called.body.error.param]).toEqual([400, "sort"]);
    }
  });

  test("[A] 325 sort=updated_at is accepted, refused or silently ignored by a switch", async () => {
    const oldest = orders[3];
    await sandbox.control("POST", "/clock", { advance_seconds: 1 });
    await sandbox.ok("POST", `/v1/orders/${oldest.id}/refund`, {});
    expect(ids(await list("sort=updated_at[desc]&limit=1"))).toEqual([oldest.id]);
    expect(await walk("orders", "sort=-updated_at&limit=3")).toHaveLength(orders.length);
    await sandbox.control("PUT", "/switches", { sort_by_updated_at: "refused" });
    const called = await sandbox.call("GET", "/v1/orders?sort=updated_at[desc]");
    expectRefusal(called, 400, "invalid_value", "sort");
    await sandbox.control("PUT", "/switches", { sort_by_updated_at: "ignored" });
    expect(ids(await list("sort=updated_at[asc]"))).toEqual(ids(await list("")));
    await sandbox.control("PUT", "/switches", { sort_by_updated_at: "accepted" });
  });

  test("[S] 137 [A] 138 [S] 322 expand embeds what is documented and refuses the rest", async () => {
    const plain = (await list("limit=1")).data[0];
    expect(["items", "transactions", "customer"].filter((name) => name in plain)).toEqual([]);
    const full = (await list("limit=1&expand=customer,items,transactions")).data[0];
    expect(full.customer.id).toBe(full.customer_id);
    expect(full.items).toHaveLength(1);
    expect(full.transactions).toHaveLength(1);
    expectRefusal(await sandbox.call("GET", "/v1/orders?expand=cards"), 400, "invalid_value");
    const one = await sandbox.ok("GET", `/v1/orders/${full.id}?expand=customer,transactions`);
    expect(one.customer.id).toBe(full.customer_id);
    const items = await sandbox.call("GET", `/v1/orders/${full.id}?expand=items`);
    expectRefusal(items, 400, "invalid_value");
  });

  test("[S] 139 [S] 323 fields restricts to what was asked for, and the id", async () => {
    const { data } = await list("fields[orders]=total,status&limit=1");
    expect(Object.keys(data[0]).sort()).toEqual(["id", "status", "total"]);
  });

  test("[S] 140 [A] 141 [A] 142 created_at bounds are half-open and compare instants", async () => {
    const boundary = "2026-03-01T00:01:00.000Z";
    const later = await walk("orders", `limit=100&created_at[gte]=${boundary}`);
    const earlier = await walk("orders", `limit=100&created_at[lt]=${boundary}`);
    expect([later.length, earlier.length]).toEqual([14, 12]);
    expect([...later, ...earlier]).toEqual(await walk("orders", "limit=100"));
    const offset = encodeURIComponent("2026-03-01T02:01:00+02:00");
    expect(await walk("orders", `limit=100&created_at[gte]=${offset}`)).toEqual(later);
    const bad = await sandbox.call("GET", "/v1/orders?created_at[gte]=yesterday");
    expectRefusal(bad, 400, "invalid_format", "created_at[gte]");
  });

  test("[A] 143 [A] 144 filters combine with AND; nothing found is an empty page", async () => {
    const query = `limit=100&customer_id=${poor.id}&status=failed&created_at[gte]=2026-03-01T00:01:00Z`;
    expect((await list(query)).data).toHaveLength(3);
    const none = await list(`customer_id=${rich.id}&status=failed`);
    expect(none).toMatchObject({ data: [], has_more: false, cursors: { next: null } });
  });
});

describe("orders", () => {
  test("[S] 318 filters by customer and by an inclusive range of the total", async () => {
    const { total } = orders[0];
    expect((await list(`customer_id=${poor.id}&limit=100`)).data).toHaveLength(6);
    expect((await list(`total[gte]=${total}&total[lte]=${total}&limit=100`)).data).toHaveLength(26);
    expect((await list(`total[gte]=${total + 1}`)).data).toEqual([]);
    expect((await list(`total[lte]=${total - 1}`)).data).toEqual([]);
  });

  test("[S] 319 status takes a comma list", async () => {
    const failed = await walk("orders", "limit=3&status=failed");
    const paid = await walk("orders", "limit=3&status=succeeded,refunded");
    const union = await walk("orders", "limit=3&status=failed,succeeded,refunded");
    expect(union).toHaveLength(26);
    expect(new Set([...failed, ...paid])).toEqual(new Set(union));
    expectRefusal(await sandbox.call("GET", "/v1/orders?status=paid"), 400, "invalid_value");
  });

  test("[A] 320 [A] 321 four statuses cannot be filtered by, and are listed without a filter", async () => {
    for (const status of [
      "chargeback",
      "chargeback_accepted",
      "chargeback_dismissed",
      "refund_failed",
    ]) {
      const called = await sandbox.call("GET", `/v1/orders?status=succeeded,${status}`);
      expectRefusal(called, 400, "invalid_value", "status");
    }
    const { id } = orders[1];
    await sandbox.control("POST", `/orders/${id}/chargeback`);
    const listed = await list("limit=100");
    expect(listed.data.find((order: Json) => order.id === id).status).toBe("chargeback");
    await sandbox.control("PUT", "/switches", { unfilterable_order_statuses: "accepted" });
    expect(ids(await list("status=chargeback"))).toEqual([id]);
    await sandbox.control("PUT", "/switches", { unfilterable_order_statuses: "refused" });
  });

  test("[S] 324 there is no filter on updated_at", async () => {
    const all = await list("limit=100&updated_at[gte]=2099-01-01T00:00:00Z");
    expect(all.data).toHaveLength(26);
  });
});

describe("transactions", () => {
  test("[S] 426 [S] 427 filters, and refuses unknown values", async () => {
    const get = (query: string) => sandbox.ok("GET", `/v1/transactions?limit=100&${query}`);
    const [order] = orders;
    expect((await get(`order_id=${order.id}`)).data).toHaveLength(1);
    expect((await get("order_id=nonsense")).data).toEqual([]);
    expect((await get(`customer_id=${poor.id}&status=failed&type=sale`)).data).toHaveLength(6);
    expect((await get("type=refund")).data).toHaveLength(1);
    expect((await get(`amount[gte]=${order.total}&amount[lte]=${order.total}`)).data.length).toBe(
      27,
    );
    expect((await get("created_at[lt]=2026-03-01T00:01:00Z")).data).toHaveLength(12);
    for (const query of ["status=paid", "type=gift"]) {
      const called = await sandbox.call("GET", `/v1/transactions?${query}`);
      expectRefusal(called, 400, "invalid_value");
    }
  });

  test("[S] 428 [S] 432 expand embeds customer and order; charged-back sales are found whatever their age", async () => {
    await sandbox.control("POST", "/clock", { advance_seconds: 400 * 86_400 });
    const found = await sandbox.ok(
      "GET",
      "/v1/transactions?status=chargeback&expand=order,customer",
    );
    expect(found.data).toHaveLength(1);
    const [sale] = found.data;
    expect([sale.order.id, sale.customer.id]).toEqual([sale.order_id, sale.customer_id]);
    const one = await sandbox.ok("GET", `/v1/transactions/${sale.id}?expand=order`);
    expect(one.order.transactions[0].id).toBe(sale.id);
  });
});
