import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { defaultAccounts } from "../../src/parts/reports/base/account-map.ts";
import { closeMonth } from "../../src/parts/reports/close/close-month.ts";
import { businessDaysAfter } from "../../src/parts/sandbox/resources/orders/charge-order.ts";
import { liveKey } from "../../src/parts/sandbox/engine/keys.ts";
import { applyBatch } from "../../src/core/worker/apply-batch.ts";
import { storeEvent } from "../reconcile/deliveries.ts";
import { type ReconcileStand, createReconcileStand } from "../reconcile/reconcile-stand.ts";
import { type Json, type TestSandbox, startTestSandbox } from "../sandbox/harness.ts";
import { applyDeps } from "../worker/worker-stand.ts";
import { ask } from "./ask.ts";
import { letTimePass, mirrorState } from "./sandbox-history.ts";

/* A month of the live service: a sale is confirmed two business days after it was paid, and no event says so. */

let sandbox: TestSandbox;
let stand: ReconcileStand;

const settlementDays = 2;
/** Every fourth night has each day of the week within the month. `npm run torture` has them all. */
const daysBetweenRuns = inject("isTorture") ? 1 : 4;
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** The sandbox's clock goes so far beyond the month. A state that is dated after the wall's clock would not be believed. */
const daysBeyond = 23;
/** The last month of which that much is over by the wall's clock. */
const firstOfMonth = new Date(Date.now() - daysBeyond * dayMs);
firstOfMonth.setUTCDate(1);
firstOfMonth.setUTCMonth(firstOfMonth.getUTCMonth() - 1);
firstOfMonth.setUTCHours(0, 0, 0, 0);
const nextMonth = new Date(firstOfMonth);
nextMonth.setUTCMonth(nextMonth.getUTCMonth() + 1);
const month = firstOfMonth.toISOString().slice(0, 7);
const lastDay = new Date(nextMonth.getTime() - dayMs).toISOString().slice(0, 10);
const period = { from: `${month}-01`, to: lastDay };

const live = { key: liveKey };
const call = (method: string, path: string, body?: unknown): Promise<Json> =>
  sandbox.ok(method, `/v1${path}`, body, live);
const advanceTo = (at: Date): Promise<Json> => sandbox.control("POST", "/clock", { now: at.toISOString() });

let delivered = 0;

/** Delivers every event that was sent since the last call. */
async function deliverAll(): Promise<void> {
  const { data } = await sandbox.control("GET", "/events?mode=live&limit=50000");
  const { db } = stand.database;
  const seqs: number[] = [];
  for (const event of (data as Json[]).slice(delivered)) seqs.push(await storeEvent(db, event));
  delivered = data.length;
  if (seqs.length > 0) await applyBatch(applyDeps(db), seqs);
}

interface Shop {
  /** Orders that were paid, oldest first, and have not changed since. */
  paid: Json[];
  order(): Promise<Json>;
}

async function openShop(): Promise<Shop> {
  const customer = await call("POST", "/customers", { email: "l@example.test" });
  const capture = { number: "4916338506082832", mode: "live" };
  const { card_token } = await sandbox.control("POST", "/card_tokens", capture);
  const cards = `/customers/${customer.id}/payment_methods`;
  const card = await call("POST", cards, { card_token });
  const buyer = { customer_id: customer.id, payment_method_id: card.id };
  const { data: products } = await call("GET", "/products?limit=100");
  const { data: plans } = await call("GET", "/plans?limit=100");
  const { id: plan_id, billing_cycle } = plans.find((p: Json) => p.plan_code === "box-weekly-usd");
  const { interval, interval_count } = billing_cycle;
  await call("POST", "/subscriptions", {
    ...buyer,
    plan_id,
    billing_cycle: { interval, interval_count },
  });
  const paid: Json[] = [];
  return {
    paid,
    async order() {
      const { id } = products[paid.length % products.length];
      const quantity = 1 + (paid.length % 3);
      const order = await call("POST", "/orders", {
        ...buyer,
        items: [{ product_id: id, quantity }],
      });
      paid.push(order);
      return order;
    },
  };
}

interface SandboxSale {
  id: string;
  currency: string;
  amount: number;
  at: Date;
  settlesAt: Date;
}

/** Every sale that the sandbox has sold, with the time at which its own rule settles it. */
async function sandboxSales(): Promise<SandboxSale[]> {
  const { transactions } = await sandbox.control("GET", "/snapshot?mode=live");
  return (transactions as Json[])
    .filter(({ type, status }) => type === "sale" && status !== "voided" && status !== "failed")
    .map(({ id, currency, amount, created_at }) => {
      const at = new Date(created_at);
      return { id, currency, amount, at, settlesAt: businessDaysAfter(at, settlementDays) };
    });
}

const isUnsettledAt =
  (time: Date) =>
  ({ at, settlesAt }: SandboxSale): boolean =>
    at < time && settlesAt >= time;

const sum = (sales: readonly SandboxSale[]): string =>
  String(sales.reduce((all, { amount }) => all + BigInt(amount), 0n));

const nextDay = (day: string): string => new Date(Date.parse(day) + dayMs).toISOString().slice(0, 10);

/** A day of business: two sales, and now and then what becomes of former ones, settled or not. */
async function playDay(shop: Shop, start: Date, day: number): Promise<void> {
  for (const [n, hour] of [10, 23].entries()) {
    await advanceTo(new Date(start.getTime() + hour * hourMs));
    const order = await shop.order();
    if (n === 1 && day % 3 === 0) await call("POST", `/orders/${order.id}/refund`, { amount: 100 });
    if (n === 1 && day % 5 === 0) {
      const { id } = await shop.order();
      shop.paid.pop();
      await sandbox.control("POST", `/orders/${id}/void`);
    }
    const older = shop.paid.at(-12);
    if (older === undefined || n > 0) continue;
    if (day % 4 === 0) await call("POST", `/orders/${older.id}/refund`, {});
    if (day % 4 === 2) await sandbox.control("POST", `/orders/${older.id}/chargeback`);
    if (day % 8 !== 2) continue;
    await advanceTo(new Date(start.getTime() + (hour + 1) * hourMs));
    await sandbox.control("POST", `/orders/${older.id}/chargeback_dismiss`);
  }
}

describe("a month in which sales settle two business days after they were paid", () => {
  const unclean: unknown[] = [];
  let shop: Shop;

  beforeAll(async () => {
    sandbox = await startTestSandbox("live settlement");
    stand = await createReconcileStand(sandbox.url, { apiKey: liveKey });
    await sandbox.control("PUT", "/switches", { live_settlement_days: settlementDays });
    const before = 5;
    await advanceTo(new Date(firstOfMonth.getTime() - before * dayMs));
    shop = await openShop();
    await stand.run({ kind: "import" });
    const days = before + (nextMonth.getTime() - firstOfMonth.getTime()) / dayMs + 1;
    for (let day = 0; day < days; day++) {
      const start = new Date(firstOfMonth.getTime() + (day - before) * dayMs);
      await playDay(shop, start, day);
      await advanceTo(new Date(start.getTime() + dayMs + hourMs));
      await deliverAll();
      if (day % daysBetweenRuns > 0) continue;
      const checks = { invariantModes: {} };
      const { totals, complete } = await stand.run({ kind: "nightly" }, { checks });
      const { healed, left, otherFindings } = totals;
      if (!complete || [healed, left, otherFindings].some((c) => Object.keys(c).length > 0)) {
        unclean.push({ day, complete, healed, left, otherFindings });
      }
    }
    await stand.run({ kind: "full" });
  }, 300_000);
  afterAll(async () => {
    await stand.close();
    await sandbox.close();
  });

  test("has clean nights", () => {
    expect(unclean).toEqual([]);
  });

  test("passes, with what was paid and not settled at its ends in columns and a list of their own", async () => {
    const { rows, about } = await ask(stand.database.db, "month-end", period);
    expect(about.proof).toMatchObject({ verdict: "PASS", openFindings: "0" });
    const sales = await sandboxSales();
    const currencies = [...new Set(sales.map(({ currency }) => currency))].sort();
    expect(rows.map(({ currency }) => currency)).toEqual(currencies);
    for (const row of rows) {
      const own = sales.filter(({ currency }) => currency === row["currency"]);
      const sold = own.filter(({ at }) => firstOfMonth <= at && at < nextMonth);
      expect(row["sales"]).toBe(sum(sold));
      expect(row["unsettled_opening"]).toBe(sum(own.filter(isUnsettledAt(firstOfMonth))));
      expect(row["unsettled_closing"]).toBe(sum(own.filter(isUnsettledAt(nextMonth))));
    }
    const list = (await ask(stand.database.db, "cut-off", period)).rows;
    const expected = sales.filter(isUnsettledAt(nextMonth));
    expect(expected.length).toBeGreaterThan(2);
    expect(new Set(list.map(({ sale }) => sale))).toEqual(new Set(expected.map(({ id }) => id)));
    expect(list).toHaveLength(expected.length);
    for (const { settled_on, sale } of list) {
      const settlesAt = expected.find(({ id }) => id === sale)?.settlesAt as Date;
      const { now } = (await sandbox.control("GET", "")).clock;
      const settledOn = settlesAt > new Date(now) ? null : settlesAt.toISOString().slice(0, 10);
      expect(settled_on).toBe(settledOn);
    }
  });

  test("misses no webhook by a settlement", async () => {
    const { rows } = await ask(stand.database.db, "delivery-statement", period);
    const orders = rows.filter(({ resource }) => resource === "order");
    expect(orders.map(({ event }) => event)).toEqual(
      expect.arrayContaining(["order.succeeded", "order.refunded", "order.(chargeback)"]),
    );
    for (const row of orders) {
      const announced = row["event"] === "none is documented" ? "0" : row["changes"];
      expect(row).toMatchObject({
        announced,
        received: announced,
        missed: "0",
      });
    }
  });

  test("closes without force, and its settlements correct nothing in the next month", async () => {
    const { db } = stand.database;
    await letTimePass(db);
    const request = { month, timeZone: "UTC", accounts: defaultAccounts, reason: null, by: "anna" };
    expect(await closeMonth(db, request)).toMatchObject({ verdict: "PASS" });
    const closed = (await ask(db, "month-end", period)).rows;
    await letTimePass(db);
    await advanceTo(new Date(nextMonth.getTime() + 8 * dayMs));
    await deliverAll();
    await stand.run({ kind: "full" });
    const { rows } = await ask(db, "month-end", {
      from: nextDay(period.to),
      to: nextDay(period.to),
    });
    expect(rows.map((row) => [row["currency"], row["corrections"]])).toEqual(
      closed.map((row) => [row["currency"], "0"]),
    );
    expect(rows.map((row) => row["unsettled_opening"])).toEqual(closed.map((row) => row["unsettled_closing"]));
    expect((await ask(db, "changes-after-close", { from: period.from, to: "2100-01-01" })).rows).toEqual([]);
  });

  test("still counts a refund whose event was lost as a missed webhook, settled or not", async () => {
    const { db } = stand.database;
    const unsettled = await shop.order();
    const settled = shop.paid.at(-9);
    await advanceTo(new Date(nextMonth.getTime() + 9 * dayMs));
    // A renewal that is due in between has events of its own.
    await deliverAll();
    for (const { id } of [unsettled, settled]) {
      await call("POST", `/orders/${id}/refund`, { amount: 100 });
      delivered += 1;
    }
    await advanceTo(new Date(nextMonth.getTime() + 14 * dayMs));
    await deliverAll();
    const { totals } = await stand.run({ kind: "full" });
    expect(totals.healed).toEqual({ behind: 2, missing_here: 2 });
    const causes = await db("reconcile.findings").whereIn("object_id", [unsettled.id, settled.id]).pluck("cause");
    expect(causes).toEqual(["missed_webhook", "missed_webhook"]);
  });

  test("misses no webhook when order and sale were read at different steps of the settlement", async () => {
    const { db } = stand.database;
    const placedAt = new Date(nextMonth.getTime() + 15 * dayMs);
    await advanceTo(placedAt);
    const { id } = await shop.order();
    const refunded = await shop.order();
    await call("POST", `/orders/${refunded.id}/refund`, { amount: 100 });
    await deliverAll();
    await advanceTo(new Date(placedAt.getTime() + dayMs));
    await stand.run({ kind: "full" });
    await advanceTo(new Date(placedAt.getTime() + 7 * dayMs));
    const { orders, transactions } = await sandbox.control("GET", "/snapshot?mode=live");
    const nothing = { orders: [], transactions: [], subscriptions: [], customers: [] };
    await mirrorState(
      db,
      {
        ...nothing,
        orders: (orders as Json[]).filter((order) => order.id === refunded.id),
        transactions: (transactions as Json[]).filter((sale) => sale.order_id === id),
      },
      new Date(placedAt.getTime() + 7 * dayMs).toISOString(),
    );
    const day = placedAt.toISOString().slice(0, 10);
    const { rows } = await ask(db, "delivery-statement", { from: day, to: nextDay(nextDay(day)) });
    const told = (event: string) => rows.filter((row) => row["event"] === event);
    const one = { changes: "1", announced: "1", received: "1", missed: "0" };
    expect(told("order.succeeded")).toMatchObject([one]);
    expect(told("order.refunded")).toMatchObject([one]);
  });
});
