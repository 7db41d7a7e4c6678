import type { Knex } from "knex";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allReports } from "../../src/parts/reports/catalogue/all.ts";
import { latestAsOf } from "../../src/parts/reports/base/period.ts";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { ask } from "./ask.ts";
import { type ServiceState, type WireObject, letTimePass, mirrorState, playHistory } from "./sandbox-history.ts";

let database: TestDatabase;
let service: ServiceState;
let asOf: string;
const names = allReports.map(({ name }) => name);
const year = { from: "2026-01-01", to: "2026-12-31" };
const live = new Map<string, Awaited<ReturnType<typeof ask>>>();
const empty = new Set(["exceptions", "changes-after-close"]);

beforeAll(async () => {
  database = await createTestDatabase();
  const { db } = database;
  service = await playHistory(
    db,
    { seed: "all", orders: 300, subscriptions: 60, days: 90, startsAt: "2026-02-10T00:00:00.000Z" },
    3,
  );
  service = await withUnsettledSale(db, service);
  await letTimePass(db);
  asOf = (await latestAsOf(db)).toISOString();
  for (const name of names) live.set(name, await ask(db, name, year));
});
afterAll(() => database.destroy());

test.each(names)("%s says the same of now and as of now", async (name) => {
  const then = await ask(database.db, name, { ...year, asOf });
  expect(then.rows).toEqual(live.get(name)?.rows);
  if (!empty.has(name)) expect(then.rows).not.toEqual([]);
});

describe("when every object has changed since", () => {
  beforeAll(() => mirrorState(database.db, changed(service), "2027-01-01T00:00:00.000Z"), 60_000);

  test.each(names)("%s still says as of then what it said", async (name) => {
    const { rows, about } = await ask(database.db, name, { ...year, asOf });
    expect(rows).toEqual(live.get(name)?.rows);
    expect(about.sha256).toBe(live.get(name)?.about.sha256);
  });

  test("and says otherwise now", async () => {
    const now = await ask(database.db, "month-end", year);
    expect(now.rows).not.toEqual(live.get("month-end")?.rows);
  });
});

/** The last sale as the live service shows it for some days. */
async function withUnsettledSale(db: Knex, state: ServiceState): Promise<ServiceState> {
  const sale = state.transactions.findLast((t) => t["type"] === "sale" && t["status"] === "succeeded");
  const at = "2026-06-01T00:00:00.000Z";
  const unsettled = { ...sale, status: "in_progress", updated_at: at };
  const none = { orders: [], subscriptions: [], customers: [] };
  await mirrorState(db, { ...none, transactions: [unsettled] }, at);
  return { ...state, transactions: state.transactions.map((t) => (t === sale ? unsettled : t)) };
}

/** Every object in another state: money, status and time. */
function changed(state: ServiceState): ServiceState {
  const later = (object: WireObject): WireObject => ({
    ...object,
    updated_at: "2026-12-31T00:00:00.000Z",
  });
  return {
    orders: state.orders.map((o) => ({
      ...later(o),
      status: "chargeback",
      total: 1,
      transactions: [],
    })),
    transactions: state.transactions.map((t) => ({ ...later(t), status: "voided", amount: 1 })),
    subscriptions: state.subscriptions.map((s) => ({ ...later(s), status: "canceled" })),
    customers: state.customers.map(later),
  };
}
