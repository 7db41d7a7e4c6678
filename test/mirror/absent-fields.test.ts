import type { Knex } from "knex";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Resource, Snapshot } from "../../src/core/mirror/snapshot.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { emptyMirror } from "./copies.ts";
import {
  apply,
  at,
  rowOf,
  sampleCustomer,
  sampleEntry,
  sampleOrder,
  sampleSubscription,
  seen,
  shown,
} from "./samples.ts";

type Wire = Record<string, unknown>;

const database = useTestDatabase();
let db: Knex;
beforeAll(() => {
  ({ db } = database);
});
beforeEach(() => emptyMirror(db));

const without = (object: Wire, ...keys: string[]): Wire =>
  Object.fromEntries(Object.entries(object).filter(([key]) => !keys.includes(key)));
const paid = { description: "A box", payment_method: { id: "pm-1", card_brand: "visa" } };
const full = sampleOrder({ ...paid, updated_at: at(0) });
const later = { ...full, status: "refunded", updated_at: at(60) };
const wanted = async (...snapshots: Snapshot[]) => (await apply(db, ...snapshots)).unread;
const order = [{ resource: "order", id: "order-1" }];

describe("an event that lacks a key which the mirror knows", () => {
  test("orders a read of its object, and counts meanwhile", async () => {
    await apply(db, shown("order", full));
    expect(await wanted(shown("order", without(later, "customer_id")))).toEqual(order);
    expect(await rowOf(db, "orders", "order-1")).toMatchObject({ status: "refunded" });
    expect(await wanted(seen("order", later, 120))).toEqual([]);
    expect(await rowOf(db, "orders", "order-1")).toMatchObject({ customer_id: "customer-1" });
  });

  test("orders the read also where it came first, and where both came together", async () => {
    expect(await wanted(shown("order", without(later, "customer_id")))).toEqual([]);
    expect(await wanted(shown("order", full))).toEqual(order);
    await emptyMirror(db);
    const both = [shown("order", without(later, "customer_id")), shown("order", full)];
    expect(await wanted(...both)).toEqual(order);
  });

  test("orders a read where a nested key is what it lacks", async () => {
    await apply(db, shown("order", full));
    const thin = { ...later, payment_method: { id: "pm-1" } };
    expect(await wanted(shown("order", thin))).toEqual(order);
  });

  test("orders no second read for the next one like it, once a read showed the object without the key", async () => {
    await apply(db, shown("order", full));
    const thin = without(later, "description");
    expect(await wanted(shown("order", thin))).toEqual(order);
    expect(await wanted(seen("order", thin, 120))).toEqual([]);
    expect(await wanted(shown("order", { ...thin, updated_at: at(180) }))).toEqual([]);
  });

  test.each<[Resource, Wire, string, string]>([
    ["subscription", sampleSubscription(), "billing_cycle", "subscription-1"],
    [
      "subscription",
      { ...sampleSubscription(), failure_reason: "no", attempt_count: 1 },
      "attempt_count",
      "subscription-1",
    ],
    ["customer", sampleCustomer(), "first_name", "customer-1"],
  ])("of a %s: %j without %s", async (resource, object, key, id) => {
    await apply(db, shown(resource, object));
    const thin = without({ ...object, updated_at: at(60) }, key);
    expect(await wanted(shown(resource, thin))).toEqual([{ resource, id }]);
  });

  test("of an order's entry: the order is read", async () => {
    const entry = sampleEntry({ updated_at: at(60) });
    await apply(db, shown("order", { ...full, transactions: [sampleEntry()] }));
    const thin = { ...later, transactions: [without(entry, "processor_transaction_id")] };
    expect(await wanted(shown("order", thin))).toEqual(order);
  });
});

describe("no read is ordered", () => {
  test("by a key that is null: that is known", async () => {
    await apply(db, shown("order", full));
    expect(await wanted(shown("order", { ...later, description: null }))).toEqual([]);
  });

  test("by a key that nobody knows a value of", async () => {
    await apply(db, shown("order", without(full, "subscription_id")));
    expect(await wanted(shown("order", without(later, "subscription_id")))).toEqual([]);
  });

  test("by what a read does not show, nor by an event that comes again", async () => {
    await apply(db, shown("order", full));
    expect(await wanted(seen("order", without(later, "description"), 120))).toEqual([]);
    const thin = shown("order", without({ ...later, updated_at: at(180) }, "customer_id"));
    expect(await wanted(thin)).toEqual(order);
    expect(await wanted(thin)).toEqual([]);
  });
});
