import { beforeEach, expect, test } from "vitest";
import { type Snapshot, type WireObject, compareWithSnapshot } from "../../../../src/parts/sandbox/cli/demo/compare.ts";
import { useTestDatabase } from "../../../support/use-database.ts";

const at = "2026-03-01T10:00:00.000Z";
const later = "2026-03-01T10:00:01.000Z";

/** As rows of the mirror; the service shows the same names, but for a subscription's money. */
const objects = {
  orders: {
    id: "ord_1",
    status: "succeeded",
    subtotal: 1_000,
    discount_amount: 100,
    total: 900,
    currency: "EUR",
    order_number: "1001",
    customer_id: "cus_1",
    subscription_id: "sub_1",
    subscription_cycle: 1,
    created_at: at,
    updated_at: at,
  },
  transactions: {
    id: "txn_1",
    type: "sale",
    status: "succeeded",
    amount: 900,
    currency: "EUR",
    order_id: "ord_1",
    customer_id: "cus_1",
    created_at: at,
    updated_at: at,
  },
  subscriptions: {
    id: "sub_1",
    status: "active",
    customer_id: "cus_1",
    amount: 900,
    currency: "EUR",
    next_billing_date: later,
    current_billing_cycle: 1,
    created_at: at,
    updated_at: at,
  },
  customers: { id: "cus_1", email: "a@example.com", created_at: at, updated_at: at },
} as const;

const tables = ["orders", "transactions", "subscriptions", "customers"] as const;
type Table = (typeof tables)[number];

const database = useTestDatabase();
beforeEach(async () => {
  for (const table of tables) {
    await database.db(`mirror.${table}`).delete();
    await database.db(`mirror.${table}`).insert({ ...objects[table], last_cause: "test" });
  }
});

/** The service shows a subscription's money in its plan. */
function subscriptionAsShown(): WireObject {
  const { amount, currency, ...shown } = objects.subscriptions;
  return { ...shown, plan: { id: "pln_1", amount, currency } };
}

const snapshotWith = (changed: Partial<Record<Table, readonly WireObject[]>> = {}): Snapshot => ({
  orders: [objects.orders],
  transactions: [objects.transactions],
  subscriptions: [subscriptionAsShown()],
  customers: [objects.customers],
  hardDeletedCustomers: [],
  ...changed,
});

/** What is wrong, by table. */
async function wrong(snapshot: Snapshot): Promise<Partial<Record<string, string[]>>> {
  const comparisons = await compareWithSnapshot(database.db, snapshot);
  return Object.fromEntries(
    comparisons
      .filter(({ missing, different }) => missing + different > 0)
      .map(({ resource, examples }) => [resource, examples]),
  );
}

test("rows that hold what the service shows are equal", async () => {
  expect(await wrong(snapshotWith())).toEqual({});
});

test.each<[Table, string, unknown]>([
  ["orders", "total", 901],
  ["orders", "status", "failed"],
  ["orders", "updated_at", later],
  ["orders", "deleted_at", at],
  ["transactions", "amount", 901],
  ["transactions", "updated_at", later],
  ["transactions", "deleted_at", at],
  ["subscriptions", "amount", 901],
  ["subscriptions", "currency", "USD"],
  ["subscriptions", "current_billing_cycle", 2],
  ["subscriptions", "deleted_at", at],
  ["customers", "email", "b@example.com"],
  ["customers", "deleted_at", at],
])("a row of %s with another %s is seen", async (table, column, value) => {
  await database.db(`mirror.${table}`).update({ [column]: value });
  const found = await wrong(snapshotWith());
  const field = column === "deleted_at" ? "deleted" : column;
  expect(found[table]?.[0]).toContain(`${objects[table].id}: ${field} is `);
});

test.each(tables)("a row of %s that is missing, or is nowhere else, is seen", async (table) => {
  expect((await wrong(snapshotWith({ [table]: [] })))[table]).toEqual([`${objects[table].id}: only in the mirror`]);
  await database.db(`mirror.${table}`).delete();
  expect((await wrong(snapshotWith()))[table]).toEqual([`${objects[table].id}: only at the service`]);
});

test("a customer that is gone for good there is equal to a tombstone here, and to nothing else", async () => {
  const gone = { ...snapshotWith({ customers: [] }), hardDeletedCustomers: ["cus_1"] };
  expect((await wrong(gone))["customers"]).toEqual(["cus_1: only in the mirror"]);
  await database.db("mirror.customers").update({ deleted_at: at });
  expect(await wrong(gone)).toEqual({});
});

test("a deleted customer must be a tombstone here", async () => {
  const snapshot = snapshotWith({ customers: [{ ...objects.customers, deleted: true }] });
  expect((await wrong(snapshot))["customers"]).toHaveLength(1);
  await database.db("mirror.customers").update({ deleted: true, deleted_at: at });
  expect(await wrong(snapshot)).toEqual({});
});
