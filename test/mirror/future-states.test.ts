import type { Knex } from "knex";
import { beforeEach, describe, expect, test } from "vitest";
import { eraseHistory } from "../../src/core/mirror/privacy/erase-mirror.ts";
import type { Snapshot } from "../../src/core/mirror/snapshot.ts";
import { canonicalTimestamp } from "../../src/core/contract/timestamp.ts";
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
  sampleTransaction,
  seen,
  shown,
} from "./samples.ts";
import { emptyTables } from "../support/empty-tables.ts";

const database = useTestDatabase();
beforeEach(() => emptyAll());

async function emptyAll(): Promise<void> {
  await emptyMirror(database.db);
  await emptyTables(database.db, ["mirror.unbelieved"]);
}

/** An event that came at a time. */
const received = (observation: Snapshot, seconds: number): Snapshot => ({
  ...observation,
  receivedAt: canonicalTimestamp(at(seconds)),
});

const never = "9999-01-01T00:00:00.000Z";
const tables = ["orders", "transactions", "subscriptions", "customers", "versions"];

async function rows(): Promise<string> {
  const parts = tables.map(
    (table) =>
      `(select coalesce(json_agg(r.row order by r.row), '[]')::text
        from (select to_jsonb(t) - 'recorded_at' - 'seq' as row from mirror.${table} t) r)`,
  );
  const { rows: found } = await database.db.raw<{ rows: { all: string }[] }>(
    `select concat_ws('|', ${parts.join(", ")}) as all`,
  );
  return found[0]?.all ?? "";
}

const unbelieved = () => database.db("mirror.unbelieved").orderBy(["resource", "id"]).select("resource", "id");

test.each([
  ["order", "orders", sampleOrder],
  ["transaction", "transactions", sampleTransaction],
  ["subscription", "subscriptions", sampleSubscription],
  ["customer", "customers", sampleCustomer],
] as const)(
  "a %s that is dated 9999 changes no row, and yields to what comes later",
  async (resource, table, sample) => {
    const { db } = database;
    const now = sample();
    const poison = sample({ updated_at: never, metadata: { poison: true } });
    await apply(db, received(shown(resource, now), 0));
    const before = await rows();
    const { outcomes, unbelieved: kept } = await apply(db, received(shown(resource, poison), 5));
    expect(outcomes).toMatchObject([{ outcome: "unbelieved", id: now["id"] }]);
    expect(kept).toHaveLength(1);
    expect(await rows()).toBe(before);
    expect(await unbelieved()).toEqual([{ resource, id: now["id"] }]);
    const { outcomes: later } = await apply(db, received(shown(resource, sample({ updated_at: at(9) })), 9));
    expect(later).toMatchObject([{ outcome: "applied" }]);
    expect((await rowOf(db, table, String(now["id"])))["source_updated_at"]).toEqual(new Date(at(9)));
  },
);

test("an answer that shows an object of later than itself is not believed either", async () => {
  const { db } = database;
  await apply(db, seen("order", sampleOrder(), 9));
  const before = await rows();
  await apply(db, received(seen("order", sampleOrder({ updated_at: never, total: 1 }), 60), 60));
  expect(await rows()).toBe(before);
});

test("an hour is taken for a difference of clocks, and a second more is not", async () => {
  const { db } = database;
  const hour = 3_600;
  const { outcomes } = await apply(
    db,
    received(shown("order", sampleOrder({ updated_at: at(hour) })), 0),
    received(shown("order", sampleOrder({ id: "order-2", updated_at: at(hour + 1) })), 0),
  );
  expect(outcomes.map(({ outcome }) => outcome)).toEqual(["applied", "unbelieved"]);
});

test("of an order whose entry alone is dated 9999 the rest is believed", async () => {
  const { db } = database;
  const transactions = [sampleEntry(), sampleEntry({ id: "sale-2", updated_at: never })];
  const { outcomes } = await apply(db, received(shown("order", sampleOrder({ transactions })), 9));
  expect(outcomes).toMatchObject([{ outcome: "applied" }]);
  expect(await db("mirror.transactions").pluck("id")).toEqual(["sale-1"]);
  expect(await unbelieved()).toEqual([{ resource: "transaction.inline", id: "sale-2" }]);
});

describe("whatever the order, the batches and the repeats", () => {
  /** Of one order: three states that can be, two that cannot, and one that could not be when it came first. */
  const deliveries: Snapshot[] = [
    received(shown("order", sampleOrder({ status: "pending" })), 1),
    received(shown("order", sampleOrder({ status: "succeeded", updated_at: at(5) })), 6),
    received(shown("order", sampleOrder({ status: "canceled", updated_at: never })), 7),
    received(seen("order", sampleOrder({ status: "voided", updated_at: at(90_000), total: 7 }), 60), 60),
    received(shown("order", sampleOrder({ status: "refunded", updated_at: at(86_400) })), 9),
    received(shown("order", sampleOrder({ status: "refunded", updated_at: at(86_400) })), 86_400),
  ];

  test("the same rows are left, those of the states that can be", async () => {
    const { db } = database;
    const left = new Set<string>();
    const apart = new Set<string>();
    for (const order of permutations([0, 1, 2, 3, 4, 5]).filter((_, n) => n % 29 === 0)) {
      await emptyAll();
      const all = order.flatMap((n) => deliveries[n] ?? []);
      await apply(db, ...all.slice(0, 2));
      for (const one of all.slice(2)) await apply(db, one);
      await apply(db, ...all.slice(3));
      left.add(await rows());
      apart.add(JSON.stringify(await db("mirror.unbelieved").orderBy("content_hash").pluck("content_hash")));
    }
    expect(left.size).toBe(1);
    expect(apart.size).toBe(1);
    expect(await rowOf(db, "orders", "order-1")).toMatchObject({
      status: "refunded",
      total: "1000",
    });
  });
});

function permutations(items: readonly number[]): number[][] {
  if (items.length <= 1) return [[...items]];
  return items.flatMap((first, n) => permutations(items.filter((_, m) => m !== n)).map((rest) => [first, ...rest]));
}

test("of an erased person nothing stays or comes that was not believed", async () => {
  const { db } = database;
  const poison = sampleOrder({ id: "only-future", updated_at: never, description: "for Jane Doe" });
  await apply(db, received(shown("order", poison), 5));
  const erase = (trx: Knex.Transaction) => eraseHistory(trx, "customer-1", ["customer-1"]);
  await db.transaction(erase);
  expect(await unbelieved()).toEqual([]);
  await db("mirror.erasures").insert({ customer_id: "customer-1" });
  await apply(db, received(shown("order", poison), 5));
  const [row] = await db("mirror.unbelieved").select("data");
  expect(JSON.stringify(row)).not.toContain("Jane");
  await db("mirror.erasures").delete();
});
