import { afterAll, beforeAll, expect, test } from "vitest";
import { type Json, type TestSandbox, aCustomer, anOrder, expectRefusal, startTestSandbox } from "./harness.ts";
import { idsOf, startWithOrders, walkList } from "./order-history.ts";

let sandbox: TestSandbox;
let rich: Json;
let poor: Json;
let orders: Json[];
beforeAll(async () => {
  ({ sandbox, rich, poor, orders } = await startWithOrders());
});
afterAll(() => sandbox.close());

const ids = idsOf;
const list = (query: string) => sandbox.ok("GET", `/v1/orders?${query}`);
const walk = (path: string, query: string, after?: string) => walkList(sandbox, path, query, after);

test("a list has its shape, ten items, newest first", async () => {
  const page = await list("");
  expect(page.url).toBe("/v1/orders");
  expect(page.data).toHaveLength(10);
  expect(page.has_more).toBe(true);
  const times = page.data.map((order: Json) => order.created_at);
  expect(times).toEqual(times.toSorted().toReversed());
});

test("walks give every order once at every limit, ties included", async () => {
  const all = orders.map((order) => order.id as string).toSorted();
  for (let limit = 1; limit <= 25; limit++) {
    expect((await walk("orders", `limit=${limit}`)).toSorted()).toEqual(all);
  }
  const newestFirst = await walk("orders", "limit=7");
  const oldestFirst = await walk("orders", "limit=4&sort=created_at[asc]");
  expect(oldestFirst).toEqual(newestFirst.toReversed());
});

test("newest first holds within a millisecond too: the one made last comes first", async () => {
  const own = await startTestSandbox();
  await own.control("POST", "/clock", { now: "2026-03-01T00:00:00Z" });
  const made: string[] = [];
  for (let i = 0; i < 12; i++) made.unshift((await aCustomer(own)).id);
  const listed = await own.ok("GET", "/v1/customers?limit=100");
  expect(ids(listed)).toEqual(made);
  const byChange = await own.ok("GET", "/v1/customers?sort=-updated_at&limit=100");
  expect(ids(byChange)).toEqual(made);
  const { state } = await own.control("GET", "/snapshot");
  await own.control("PUT", "/snapshot", { state });
  expect(ids(await own.ok("GET", "/v1/customers?limit=100"))).toEqual(made);
  await own.close();
});

test("ending_before pages backward, in list order", async () => {
  const all = await walk("orders", "limit=100");
  const back = await list(`limit=5&ending_before=${all[12]}`);
  expect(ids(back)).toEqual(all.slice(7, 12));
  expect(back.has_more).toBe(true);
  const first = await list(`limit=5&ending_before=${all[3]}`);
  expect(ids(first)).toEqual(all.slice(0, 3));
  expect(first.has_more).toBe(false);
});

test("limits below 1 are refused, those above the maximum clamped or refused", async () => {
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

test("cursors are one, and known", async () => {
  const id = orders[0].id;
  const both = await sandbox.call("GET", `/v1/orders?starting_after=${id}&ending_before=${id}`);
  expectRefusal(both, 400, "invalid_value");
  const unknown = await sandbox.call("GET", "/v1/orders?starting_after=nonsense");
  expectRefusal(unknown, 400, "invalid_value", "starting_after");
});

test("a cursor that does not match the filter still has its place", async () => {
  const all = await walk("orders", "limit=100");
  const failed = new Set(await walk("orders", "limit=100&status=failed"));
  const at = all.findIndex((id) => !failed.has(id));
  const page = await list(`limit=100&status=failed&starting_after=${all[at]}`);
  expect(ids(page)).toEqual(all.slice(at + 1).filter((id) => failed.has(id)));
});

test("sort takes both forms and no unknown field", async () => {
  expect(ids(await list("sort=-created_at"))).toEqual(ids(await list("sort=created_at[desc]")));
  for (const sort of ["color", "created_at[up]", "total", "constructor"]) {
    const called = await sandbox.call("GET", `/v1/orders?sort=${sort}`);
    expect([called.status, called.body.error.param]).toEqual([400, "sort"]);
  }
});

test("sort=updated_at is accepted, refused or silently ignored by a switch", async () => {
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

test("expand embeds what is documented and refuses the rest", async () => {
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

test("fields restricts to what was asked for, and the id", async () => {
  const { data } = await list("fields[orders]=total,status&limit=1");
  expect(Object.keys(data[0]).sort()).toEqual(["id", "status", "total"]);
});

test("created_at bounds are half-open and compare instants", async () => {
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

test("a switch drops what was created in the second of a page's last item", async () => {
  const all = await walk("orders", "limit=5");
  await sandbox.control("PUT", "/switches", { page_boundary_ties: "dropped" });
  const careless = await walk("orders", "limit=5");
  // Two instants: of the newer one, what the first page did not hold is lost; then of the older one.
  expect(careless).toEqual([...all.slice(0, 5), ...all.slice(14, 19)]);
  expect(ids(await list(`limit=100&ending_before=${all[20]}`))).toEqual(all.slice(0, 14));
  await sandbox.control("PUT", "/switches", { page_boundary_ties: "kept" });
});

test("filters combine with AND; nothing found is an empty page", async () => {
  const query = `limit=100&customer_id=${poor.id}&status=failed&created_at[gte]=2026-03-01T00:01:00Z`;
  expect((await list(query)).data).toHaveLength(3);
  const none = await list(`customer_id=${rich.id}&status=failed`);
  expect(none).toMatchObject({ data: [], has_more: false, cursors: { next: null } });
});

test("the cursor of an object that is gone for good is refused", async () => {
  const { id } = await aCustomer(sandbox);
  await sandbox.ok("DELETE", `/v1/customers/${id}`);
  for (const cursor of ["starting_after", "ending_before"]) {
    const called = await sandbox.call("GET", `/v1/customers?${cursor}=${id}`);
    expectRefusal(called, 400, "invalid_value", cursor);
  }
});

test("what is created during a walk neither appears in later pages nor shifts them", async () => {
  const before = await walk("orders", "limit=100");
  const first = await list("limit=5");
  await sandbox.control("POST", "/clock", { advance_seconds: 60 });
  await anOrder(sandbox, rich);
  const rest = await walk("orders", "limit=5", first.cursors.next);
  expect([...ids(first), ...rest]).toEqual(before);
});
