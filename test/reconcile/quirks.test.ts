import { afterEach, beforeEach, expect, test } from "vitest";
import { listOrders } from "../../src/core/contract/resources/orders.ts";
import { reconcile } from "../../src/parts/reconcile/reconcile.ts";
import { dayMs, defaultReconcileSettings } from "../../src/parts/reconcile/settings.ts";
import { storeRow } from "../inbox/stored-events.ts";
import { type HostileService, type Page, never, refusal, startHostileService } from "./hostile-service.ts";
import { none } from "./none.ts";
import { type ReconcileStand, createReconcileStand, fingerprint } from "./reconcile-stand.ts";

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
    instead: ({ query }) => (Number(query.get("limit")) > 50 ? refusal(400, "invalid_value", "limit") : undefined),
  };
  await expectEqual();
});

test.each([
  ["missing", (page: Page) => Object.fromEntries(Object.entries(page).filter(([key]) => key !== "cursors"))],
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
  expect(await slicesOf("failed")).toMatchObject([{ resource: "order" }, { resource: "transaction" }]);
});

test("a storm of 429 is waited out", async () => {
  let storm = 0;
  service.quirks = {
    instead: () =>
      storm++ < 3 ? { ...refusal(429, "rate_limit_exceeded"), headers: { "retry-after": "0" } } : undefined,
  };
  await expectEqual();
});

test("a page that does not come in time is asked for again", async () => {
  const impatient = await createReconcileStand(service.url, { tryTimeoutMs: 300 });
  try {
    let slow = 0;
    service.quirks = {
      maxLimit: 10,
      instead: ({ list, nth }) => (list === "orders" && nth === 3 && slow++ === 0 ? { body: never } : undefined),
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
    { resource: "transaction", note: expect.stringContaining("not JSON") },
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

test("a customer that the list hides, and who is not deleted, makes it incomplete", async () => {
  await stand.run();
  service.quirks = {
    page: (page, { list }) => (list === "customers" ? { ...page, data: [] } : page),
  };
  const result = await stand.run();
  expect(result).toMatchObject({
    complete: false,
    totals: { confirmed: { lost_in_list: 1 }, calls: 6 },
  });
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
  // One look is enough: it does not wait for the second, nor is it gone on with.
  const result = await stand.run({ kind: "full" }, { graceMs: 600_000 });
  expect(result).toMatchObject({
    complete: false,
    error: expect.stringContaining("another account"),
  });
  expect(await stand.database.db("mirror.customers").whereNotNull("deleted_at")).toEqual([]);
  expect((await stand.run()).run.id).toBeGreaterThan(result.run.id);
});

test("a first import waits for no webhook: what changed a moment ago is imported from the page", async () => {
  const now = new Date().toISOString();
  for (const order of service.objects["orders"] ?? []) Object.assign(order, { updated_at: now });
  const waits: number[] = [];
  const result = await stand.run({ kind: "import" }, { graceMs: 600_000 }, ({ waitMs }) => {
    waits.push(waitMs);
    if (waitMs > 0) throw new Error("it waits");
  });
  expect(result).toMatchObject({ complete: true, totals: { healed: {}, left: {} } });
  expect(Math.max(...waits)).toBe(0);
  expect(result.totals.verdicts).toMatchObject({ imported: expect.any(Number) });
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

test("what a list cannot show is read by id: without a time of creation, or with one in the future", async () => {
  await stand.run();
  const { db } = stand.database;
  await db.raw(
    `insert into mirror.orders (id, created_at, total, currency, last_cause) values
       ('undated', null, 500, 'usd', 'nobody'), ('to-come', now() + interval '1 year', 500, 'usd', 'nobody')`,
  );
  await db.raw(
    `insert into mirror.transactions (id, amount, currency, last_cause) values ('nowhere', 500, 'usd', 'nobody')`,
  );
  for (const kind of ["full", "nightly"] as const) {
    const result = await stand.run({ kind });
    expect(result).toMatchObject({ complete: true, totals: { left: { missing_there: 3 } } });
  }
});

test("a version of the future is not taken for an event that was faster than the page", async () => {
  await stand.run();
  await stand.database.db.raw(
    `update mirror.orders set version = '2099' || substr(version, 5), total = 5 where id = 'order-0003'`,
  );
  const result = await stand.run();
  expect(result.totals.left).toEqual({ mismatch: 1, edited_row: 1 });
});

test("an object whose read by id is refused is left, and holds up no other", async () => {
  await stand.run();
  const { db } = stand.database;
  await db.raw(
    `insert into mirror.orders (id, created_at, total, currency, last_cause)
     select unnest(array['no-uuid', '..', '']), created_at, 500, 'usd', 'nobody' from mirror.orders
     where id = 'order-0001'`,
  );
  await db("mirror.orders").where("id", "order-0003").update({ total: 1 });
  service.quirks = {
    // The run must be dated later than what wrote the row.
    skewMs: 5_000,
    object: (object) => (object === undefined ? refusal(400, "invalid_format", "id") : undefined),
  };
  const result = await stand.run();
  expect(result.totals).toMatchObject({ healed: { mismatch: 1 }, left: { unreadable: 3 } });
  const [finding] = await db("reconcile.findings").where("object_id", "no-uuid");
  expect(finding.evidence.reason).toContain("invalid_format");
  await db("mirror.orders").whereIn("id", ["no-uuid", "..", ""]).delete();
  expect((await stand.run()).totals.left).toEqual({});
});

test("a key that may not read objects by id stops the run", async () => {
  await stand.run();
  await stand.database.db("mirror.orders").where("id", "order-0003").update({ total: 1 });
  service.quirks = { object: () => refusal(403, "insufficient_permissions") };
  const before = await fingerprint(stand);
  const result = await stand.run();
  expect(result).toMatchObject({ complete: false, totals: { rows: {} } });
  expect(result.error).toMatch(/not known whether.*refused with 403.*permission to read orders/s);
  expect(await fingerprint(stand)).toBe(before);
});

test("an id that the database cannot hold is one object that cannot be read", async () => {
  const [first] = service.objects["orders"] ?? [];
  if (first !== undefined) service.objects["orders"]?.push({ ...first, id: "nul\u0000" });
  service.quirks = { maxLimit: 31 };
  const result = await stand.run();
  expect(result.totals.left).toEqual({ unreadable: 1 });
  expect(await ordersHere()).toBe(30);
});

test.each([
  ["empty", []],
  ["the same three objects", [0, 1, 2]],
])("pages that go round in a circle end their slice: %s", async (_, shown) => {
  const orders = service.objects["orders"] ?? [];
  service.quirks = {
    page: (page, { list, nth }) =>
      list === "orders"
        ? {
            ...page,
            data: shown.map((n) => orders[n]),
            has_more: true,
            cursors: { next: orders[nth % 2]?.id },
          }
        : page,
  };
  const result = await stand.run();
  expect(result.complete).toBe(false);
  expect(await slicesOf("failed")).toMatchObject([{ resource: "order" }]);
});

test("a cursor whose object is gone restarts its slice, too", async () => {
  let refused = 0;
  service.quirks = {
    maxLimit: 10,
    instead: ({ list, query }) =>
      list === "transactions" && query.get("starting_after") !== null && refused++ === 0
        ? refusal(404, "resource_not_found", "starting_after")
        : undefined,
  };
  await expectEqual();
  // What was summed before the restart is not summed twice.
  const sums = await stand.database.db("reconcile.daily_sums").groupBy("run").sum("n as n");
  expect(sums).toEqual([{ n: "30" }, { n: "30" }]);
});

test("a report on an empty mirror calls everything missing, and nothing imported", async () => {
  const result = await stand.run({ kind: "import" }, { reportOnly: true });
  expect(result.totals).toMatchObject({ left: { missing_here: 61 }, healed: none });
  expect(result.totals.verdicts).toEqual({ missing_here: 61 });
  expect(await ordersHere()).toBe(0);
});

test("a night that reads everything reads no open item twice", async () => {
  const at = new Date(Date.now() - 2 * dayMs).toISOString();
  const times = { created_at: at, updated_at: at };
  const billing = { current_billing_cycle: 1, total_billing_cycles: 0 };
  service.objects["subscriptions"]?.push({
    id: "s-1",
    customer_id: "customer-1",
    status: "active",
    ...billing,
    ...times,
  });
  const result = await stand.run({ kind: "nightly" });
  expect(result).toMatchObject({ complete: true, totals: { confirmed: none, calls: 5 } });
});

test("an import of what was read whole before hides nothing that was lost since", async () => {
  await stand.run({ kind: "import" });
  await stand.database.db("mirror.orders").where("id", "order-0003").delete();
  const again = await stand.run({ kind: "import" });
  expect(again).toMatchObject({
    run: { isInitialImport: false },
    totals: { healed: { missing_here: 1 }, left: none },
  });
});

test("before events filled the mirror nothing was missed: a first night imports what is older", async () => {
  const { db } = stand.database;
  const firstAt = Date.now() - dayMs;
  const orderAt = (id: string, ms: number) => {
    const at = new Date(ms).toISOString();
    const [sample] = service.objects["orders"] ?? [];
    if (sample === undefined) throw new TypeError("the service has no order");
    service.objects["orders"]?.push({ ...sample, id, created_at: at, updated_at: at });
    return { eventId: `event-of-${id}`, type: "order.succeeded", createdAt: at };
  };
  const event = orderAt("told", firstAt);
  orderAt("lost", firstAt + 60_000);
  const told = { ...event, state: "applied", resourceType: "order", resourceId: "told" } as const;
  await storeRow(db, told);
  await db.raw(
    `insert into mirror.orders (id, created_at, total, currency, last_cause) values ('told', ?, 1, 'usd', 'event:1')`,
    [event.createdAt],
  );
  const result = await stand.run({ kind: "nightly" });
  expect(result.totals.verdicts).toMatchObject({ imported: 61, missing_here: 1 });
  const findings = await db("reconcile.findings").where("class", "missing_here");
  expect(findings).toMatchObject([{ object_id: "lost", cause: "missed_webhook" }]);
});

test.each([
  [0.01, 0, false],
  [0.05, 1, true],
])("with a share of %d of what was read, %i customer may be gone", async (share, gone, complete) => {
  await stand.run();
  service.objects["customers"] = [];
  const limits = { maxTombstones: 0, maxTombstoneShare: share };
  service.quirks = { skewMs: 5_000 };
  expect(await stand.run({ kind: "full" }, limits)).toMatchObject({ complete });
  const deleted = await stand.database.db("mirror.customers").whereNotNull("deleted_at");
  expect(deleted).toHaveLength(gone);
});

test("an absence that cannot be written down is left, and not called healed", async () => {
  await stand.run();
  await stand.database.db.raw("update mirror.customers set version = '2099' || substr(version, 5)");
  service.objects["customers"] = [];
  service.quirks = { skewMs: 5_000 };
  const result = await stand.run();
  expect(result.totals).toMatchObject({ healed: none, left: { missing_there: 1 } });
});

test("a service whose clock stands still is not waited for, nor asked, for ever", async () => {
  await stand.run();
  const stopped = Date.now() + 5_000;
  let reads = 0;
  service.quirks = {
    get skewMs() {
      return stopped - Date.now();
    },
    object: () => {
      reads += 1;
      return undefined;
    },
  };
  service.objects["customers"] = [];
  const result = await stand.run({ kind: "full" }, { graceMs: 100 });
  expect(result.totals).toMatchObject({ healed: { missing_there: 1 }, left: none });
  // Now and then until twice the grace is over, then once more.
  expect(reads).toBeLessThan(30);
});

test("a run ends though no clock that it reads goes on: neither this machine's nor the service's", async () => {
  await stand.run();
  service.objects["customers"] = [];
  const stopped = new Date();
  const still = { now: () => stopped, observe: () => {} };
  const deps = { ...stand.deps, clock: still, serviceClock: still };
  const settings = { ...defaultReconcileSettings, graceMs: 100 };
  const outcome = await reconcile(deps, settings, { kind: "full" });
  expect(outcome).toMatchObject({
    result: { totals: { healed: { missing_there: 1 }, left: none } },
  });
});

test("an open item that has just changed waits for its event, as what lists show does", async () => {
  const order = service.objects["orders"]?.at(-1);
  Object.assign(order ?? {}, { status: "failed", failure_code: "do_not_honor" });
  await stand.run();
  Object.assign(order ?? {}, { status: "succeeded", updated_at: new Date().toISOString() });
  let waited = 0;
  const pass = ({ waitMs }: { waitMs: number }) => {
    if (waitMs === 0 || waited > 0) return;
    waited = waitMs;
    service.quirks = { skewMs: 120_000 };
    void stand.deps.client.get(listOrders, { query: { limit: "1" } });
  };
  const result = await stand.run({ kind: "nightly" }, { graceMs: 60_000 }, pass);
  expect(waited).toBeGreaterThan(50_000);
  expect(result.totals).toMatchObject({ healed: { behind: 1 }, left: none });
});

test("every open item that left its status silently is found by the next night", async () => {
  const at = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString();
  const orders = service.objects["orders"] ?? [];
  const sales = service.objects["transactions"] ?? [];
  const subscriptions = service.objects["subscriptions"] ?? [];
  const billing = { customer_id: "customer-1", current_billing_cycle: 1, total_billing_cycles: 0 };
  const aSubscription = (id: string, hours: number, status: string) =>
    subscriptions.push({ id, status, ...billing, created_at: at(hours), updated_at: at(hours) });
  // The first page ends the walk of their list: it lies before the window.
  for (let n = 0; n < 10; n++) aSubscription(`ended-${n}`, 30, "canceled");
  for (const status of ["active", "paused", "past_due"]) aSubscription(status, 60, status);
  const open = [
    ...["pending", "failed", "chargeback", "refund_failed"].map((status, n) => [orders[29 - n], { status }]),
    ...["pending", "in_progress", "chargeback"].map((status, n) => [sales[29 - n], { status }]),
    [sales[20], { status: "failed", type: "refund" }],
  ] as const;
  for (const [object, fields] of open) Object.assign(object ?? {}, fields);
  service.quirks = { maxLimit: 10 };
  await stand.run();

  const silently = [...open.map(([object]) => object), ...subscriptions.slice(10)];
  for (const object of silently) Object.assign(object ?? {}, { status: "voided", updated_at: at(40) });
  const result = await stand.run({ kind: "nightly" });
  expect(result.totals).toMatchObject({ healed: { behind: 11 }, left: none });
});
