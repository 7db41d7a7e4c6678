import type { Knex } from "knex";
import { beforeEach, describe, expect, test } from "vitest";
import type { Snapshot } from "../../src/core/mirror/snapshot.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { emptyMirror } from "./copies.ts";
import { apply, at, rowOf, sampleCustomer, sampleEntry, sampleOrder, sampleSubscription, shown } from "./samples.ts";

const database = useTestDatabase();
beforeEach(() => emptyMirror(database.db));

interface Updates {
  updated: number;
  hot: number;
}

/** How many of the table's rows the states update, and how many of these updates leave the indexes alone. */
async function updatesBy(table: string, ...states: Snapshot[]): Promise<Updates> {
  return database.db.transaction(async (trx) => {
    const before = await updatesSoFar(trx, table);
    await apply(trx, ...states);
    const after = await updatesSoFar(trx, table);
    return { updated: after.updated - before.updated, hot: after.hot - before.hot };
  });
}

/** Those of the session that are not in the server's statistics yet. */
async function updatesSoFar(trx: Knex.Transaction, table: string): Promise<Updates> {
  const { rows } = await trx.raw<{ rows: [Updates] }>(
    `select pg_stat_get_xact_tuples_updated(t)::int as updated, pg_stat_get_xact_tuples_hot_updated(t)::int as hot
     from (select ?::regclass::oid as t) named`,
    [`mirror.${table}`],
  );
  return rows[0];
}

const hot = { updated: 1, hot: 1 };

describe("a state leaves the table's indexes alone", () => {
  test.each(["succeeded", "refunded", "failed"])("of an order that is now %s", async (status) => {
    await apply(database.db, shown("order", sampleOrder({ status: "pending" })));
    const later = shown("order", sampleOrder({ status, updated_at: at(1) }));
    expect(await updatesBy("orders", later)).toEqual(hot);
  });

  test("of a transaction, as its order shows it once more", async () => {
    const order = (seconds: number) =>
      shown("order", sampleOrder({ transactions: [sampleEntry()], updated_at: at(seconds) }));
    await apply(database.db, order(0));
    expect(await updatesBy("transactions", order(1))).toEqual(hot);
  });

  test("of a subscription that goes on as it was", async () => {
    await apply(database.db, shown("subscription", sampleSubscription()));
    const later = sampleSubscription({ total_billing_cycles: 12, updated_at: at(1) });
    expect(await updatesBy("subscriptions", shown("subscription", later))).toEqual(hot);
  });

  test("of a customer whose name and address stay", async () => {
    await apply(database.db, shown("customer", sampleCustomer()));
    const later = sampleCustomer({ company: "Joan's", updated_at: at(1) });
    expect(await updatesBy("customers", shown("customer", later))).toEqual(hot);
  });
});

test("a page keeps room for its rows' next states, one of the history too little for a row", async () => {
  const { rows } = await database.db.raw<{ rows: { name: string; percent: string }[] }>(
    `select relname as name, option_value as percent from pg_class, pg_options_to_table(reloptions)
     where relnamespace = 'mirror'::regnamespace and option_name = 'fillfactor' order by 1`,
  );
  expect(Object.fromEntries(rows.map(({ name, percent }) => [name, percent]))).toEqual({
    customers: "85",
    orders: "85",
    subscriptions: "85",
    transactions: "85",
    versions: "95",
  });
});

describe("the time at which a failed order's retry is due", () => {
  const dueAt = async (db: Knex = database.db) => (await rowOf(db, "orders", "order-1"))?.["retry_due_at"];
  const failed = (fields: Record<string, unknown> = {}) =>
    shown("order", sampleOrder({ status: "failed", attempt_count: 1, next_retry_at: at(3_600), ...fields }));
  const due = new Date(at(3_600));

  test("is that of the event that shows the decline", async () => {
    await apply(database.db, failed());
    expect(await dueAt()).toEqual(due);
  });

  test("is known whichever comes first, the retry's time or the status", async () => {
    await apply(database.db, failed({ status: "pending" }));
    expect(await dueAt()).toBeNull();
    await apply(database.db, shown("order", sampleOrder({ status: "failed", updated_at: at(1) })));
    expect(await dueAt()).toEqual(due);
  });

  test("is none once the order is paid, and is there again after a late decline", async () => {
    await apply(database.db, failed());
    await apply(database.db, shown("order", sampleOrder({ updated_at: at(1) })));
    expect(await dueAt()).toBeNull();
    await apply(database.db, shown("order", sampleOrder({ status: "failed", updated_at: at(2) })));
    expect(await dueAt()).toEqual(due);
  });

  test("is none once an event says that no retry follows", async () => {
    await apply(database.db, failed());
    await apply(database.db, failed({ attempt_count: 2, next_retry_at: null, updated_at: at(1) }));
    expect(await dueAt()).toBeNull();
  });
});

describe("what an order waits for", () => {
  const waitsFor = async () => (await rowOf(database.db, "orders", "order-1"))?.["awaits"];
  const order = (status: string, seconds: number, cycle: number | null = 2) =>
    shown(
      "order",
      sampleOrder({
        status,
        subscription_id: "subscription-1",
        subscription_cycle: cycle,
        updated_at: at(seconds),
      }),
    );

  test("is its payment while it is a declined renewal, and nothing once it is paid", async () => {
    await apply(database.db, order("failed", 0));
    expect(await waitsFor()).toBe("payment");
    await apply(database.db, order("succeeded", 1));
    expect(await waitsFor()).toBeNull();
  });

  test.each([1, null])("is nothing for a declined charge of cycle %s", async (cycle) => {
    await apply(database.db, order("failed", 0, cycle));
    expect(await waitsFor()).toBeNull();
  });

  test("is an answer while a chargeback is open, also when it is opened again", async () => {
    await apply(database.db, order("chargeback", 0));
    expect(await waitsFor()).toBe("answer");
    await apply(database.db, order("chargeback_dismissed", 1));
    expect(await waitsFor()).toBeNull();
    await apply(database.db, order("chargeback", 2));
    expect(await waitsFor()).toBe("answer");
    await apply(database.db, order("chargeback_accepted", 3));
    expect(await waitsFor()).toBeNull();
  });
});
