import { afterEach, beforeEach, expect, test } from "vitest";
import { dayMs } from "../../src/reconcile/settings.ts";
import { never, refusal, startHostileService } from "./hostile-service.ts";
import type { HostileService, Page } from "./hostile-service.ts";
import { none } from "./none.ts";
import { createReconcileStand } from "./reconcile-stand.ts";
import type { ReconcileStand } from "./reconcile-stand.ts";

let service: HostileService;
let stand: ReconcileStand;

beforeEach(async () => {
  service = await startHostileService();
  stand = await createReconcileStand(service.url);
});

afterEach(async () => {
  await stand.close();
  await service.close();
});

const ordersHere = async (): Promise<number> => {
  const [row] = await stand.database.db("mirror.orders").count("* as n");
  return Number(row?.["n"]);
};
const slicesOf = (state: string) =>
  stand.database.db("reconcile.coverage").where({ state }).select("resource", "step", "note");

/** Everything was read, and a second look finds all equal. */
async function expectEqual(): Promise<void> {
  const result = await stand.run();
  expect(result).toMatchObject({ complete: true, totals: { left: none } });
  expect(await ordersHere()).toBe(30);
  const second = await stand.run();
  expect(second).toMatchObject({
    complete: true,
    totals: { healed: none, left: none, confirmed: none },
  });
}

test("pages that are capped silently are walked to the end", async () => {
  service.quirks = { maxLimit: 7 };
  await expectEqual();
  expect(service.requests.filter(({ list }) => list === "orders").length).toBeGreaterThan(8);
});

test("a limit that is refused is lowered", async () => {
  service.quirks = {
    instead: ({ query }) =>
      Number(query.get("limit")) > 50 ? refusal(400, "invalid_value", "limit") : undefined,
  };
  await expectEqual();
});

test.each([
  [
    "missing",
    (page: Page) => Object.fromEntries(Object.entries(page).filter(([key]) => key !== "cursors")),
  ],
  ["null", (page: Page) => ({ ...page, cursors: { next: null } })],
])("where cursors.next is %s, the last id serves", async (_, page) => {
  service.quirks = { maxLimit: 4, page };
  await expectEqual();
});

test("an empty page that has more is not the end", async () => {
  service.quirks = {
    maxLimit: 10,
    page: (page, { query }) =>
      query.get("starting_after") === null
        ? { ...page, data: [], has_more: true, cursors: { next: page.data.at(-1)?.id ?? null } }
        : page,
  };
  const result = await stand.run();
  // The first page was held back, and nothing here could know of its rows.
  expect(await ordersHere()).toBe(20);
  expect(result.totals.rows["order"]).toBe(20);
});

test("an empty page that has more and shows no way on stops the slice, and nothing is called equal", async () => {
  service.quirks = {
    page: (page, { list }) =>
      list === "orders" ? { ...page, data: [], has_more: true, cursors: { next: null } } : page,
  };
  const result = await stand.run();
  expect(result.complete).toBe(false);
  expect(await slicesOf("failed")).toMatchObject([{ resource: "order" }]);
});

test("a cursor that is refused restarts its slice", async () => {
  let refused = 0;
  service.quirks = {
    maxLimit: 10,
    instead: ({ list, query }) =>
      list === "orders" && query.get("starting_after") !== null && refused++ === 0
        ? refusal(400, "invalid_value", "starting_after")
        : undefined,
  };
  await expectEqual();
});

test("a sort that is ignored skips the check of the order, says so, and is no drift", async () => {
  service.quirks = { maxLimit: 5, ignoresSort: true };
  await stand.run({ kind: "nightly" });
  const result = await stand.run({ kind: "nightly" }, { rotationNights: 1 });
  expect(await slicesOf("skipped")).toMatchObject([{ resource: "order", step: "order_check" }]);
  expect(result.totals).toMatchObject({ left: none, otherFindings: { unsupported_sort: 1 } });
  expect(result.complete).toBe(true);
});

test("a list that comes in another order proves nothing", async () => {
  service.quirks = { page: (page) => ({ ...page, data: page.data.toReversed() }) };
  const result = await stand.run();
  expect(result.complete).toBe(false);
  expect(await slicesOf("failed")).toMatchObject([
    { resource: "order" },
    { resource: "transaction" },
  ]);
});

test("a storm of 429 is waited out", async () => {
  let storm = 0;
  service.quirks = {
    instead: () =>
      storm++ < 3
        ? { ...refusal(429, "rate_limit_exceeded"), headers: { "retry-after": "0" } }
        : undefined,
  };
  await expectEqual();
});

test("a page that does not come in time is asked for again", async () => {
  const impatient = await createReconcileStand(service.url, { tryTimeoutMs: 300 });
  try {
    let slow = 0;
    service.quirks = {
      maxLimit: 10,
      instead: ({ list, nth }) =>
        list === "orders" && nth === 3 && slow++ === 0 ? { body: never } : undefined,
    };
    expect(await impatient.run()).toMatchObject({ complete: true, totals: { left: none } });
    expect(slow).toBe(1);
    const [row] = await impatient.database.db("mirror.orders").count("* as n");
    expect(row).toEqual({ n: "30" });
  } finally {
    await impatient.close();
  }
});

test("a 500 in the middle is asked again", async () => {
  let failed = 0;
  service.quirks = {
    maxLimit: 10,
    instead: ({ list, nth }) =>
      list === "orders" && nth === 3 && failed++ === 0 ? refusal(500, "internal_error") : undefined,
  };
  await expectEqual();
});

test("HTML instead of JSON is never taken for an empty list", async () => {
  await stand.run();
  service.quirks = {
    instead: ({ list }) => (list === "transactions" ? { body: "<html>Welcome</html>" } : undefined),
  };
  const result = await stand.run();
  expect(result).toMatchObject({ complete: false, totals: { confirmed: none, left: none } });
  expect(await slicesOf("failed")).toMatchObject([
    { resource: "transaction", note: expect.stringContaining("no JSON") },
  ]);
});

test("a status that nobody knows is kept as it is", async () => {
  Object.assign(service.objects["orders"]?.[0] ?? {}, { status: "teleported" });
  await expectEqual();
  const [row] = await stand.database.db("mirror.orders").where("status", "teleported");
  expect(row).toMatchObject({ id: "order-0000" });
});

test("an object whose money cannot be read is never called equal", async () => {
  Object.assign(service.objects["orders"]?.[0] ?? {}, { total: "12.50" });
  const result = await stand.run();
  expect(result.totals.left).toEqual({ unreadable: 1 });
});

test.each([-3_600_000, 3_600_000])("a clock that is %i ms off changes nothing", async (skewMs) => {
  service.quirks = { skewMs };
  await expectEqual();
});

test("rows that a list does not show although they are there make the run incomplete", async () => {
  await stand.run();
  service.quirks = {
    maxLimit: 10,
    page: (page, { list, query }) =>
      list === "orders" && query.get("starting_after") === null
        ? { ...page, data: page.data.filter((_, n) => n === 0 || n > 4) }
        : page,
  };
  const result = await stand.run();
  expect(result.complete).toBe(false);
  expect(result.totals.confirmed).toEqual({ lost_in_list: 4 });
  expect(await ordersHere()).toBe(30);
});

test("the key of another account marks nothing as deleted", async () => {
  for (let n = 0; n < 40; n++) {
    const at = new Date(Date.now() - 2 * dayMs).toISOString();
    service.objects["customers"]?.push({
      id: `c-${n}`,
      email: `c${n}@example.test`,
      created_at: at,
      updated_at: at,
    });
  }
  await stand.run();
  service.objects = { orders: [], customers: [], transactions: [], subscriptions: [] };
  const result = await stand.run();
  expect(result).toMatchObject({
    complete: false,
    error: expect.stringContaining("another account"),
  });
  expect(await stand.database.db("mirror.customers").whereNotNull("deleted_at")).toEqual([]);
});

test("a key that is refused stops the run with what to do", async () => {
  service.quirks = { instead: () => refusal(401, "invalid_api_key") };
  await expect(stand.run()).rejects.toMatchObject({ status: 401, exitCode: 2 });
});

test("more rows of one second than a page holds are neither lost nor doubted", async () => {
  const at = new Date(Math.floor((Date.now() - dayMs) / 1_000) * 1_000).toISOString();
  for (const order of service.objects["orders"] ?? []) Object.assign(order, { created_at: at });
  service.quirks = { maxLimit: 7 };
  await expectEqual();
});
