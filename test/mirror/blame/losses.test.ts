import { describe, expect, test } from "vitest";
import { canonicalTimestamp } from "../../../src/core/contract/timestamp.ts";
import { blameOf } from "../../../src/core/mirror/blame/blame.ts";
import { readComputedColumns } from "../../../src/core/mirror/blame/computed-columns.ts";
import { changesBetween } from "../../../src/core/mirror/blame/fields.ts";
import {
  type KnownObject,
  readObject,
  readStatesOf,
  withoutPersons,
} from "../../../src/core/mirror/blame/object-history.ts";
import { editedColumns, winnersNow } from "../../../src/core/mirror/blame/winners.ts";
import type { Resource, Snapshot } from "../../../src/core/mirror/snapshot.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { apply, at, sampleCustomer, sampleEntry, sampleOrder, sampleTransaction, seen, shown } from "../samples.ts";

const database = useTestDatabase();
let objects = 0;

async function known(resource: Resource, id: string): Promise<KnownObject> {
  const object = await readObject(database.db, { resource, id });
  if (object === null) throw new Error(`no ${resource} ${id}`);
  return object;
}

async function blameOfField(resource: Resource, id: string, field: string) {
  const object = await known(resource, id);
  const winners = winnersNow(object);
  const computed = await readComputedColumns(database.db, resource, winners);
  const found = blameOf(object, winners, computed).find((each) => each.field === field);
  return {
    value: found?.value,
    group: found?.group,
    since: found?.since.cause,
    lost: found?.rivals.map(({ value, loss }) => [value, loss.why, loss.isLate]),
  };
}

const caused = (snapshot: Snapshot, cause: string): Snapshot => ({ ...snapshot, cause });

describe("the status of an order", () => {
  const order = (id: string, status: string, seconds: number) => sampleOrder({ id, status, updated_at: at(seconds) });
  const newId = () => `order-${++objects}`;

  test("loses nothing to a state that followed in its order", async () => {
    const id = newId();
    await apply(database.db, caused(shown("order", order(id, "pending", 0)), "event:1"));
    await apply(database.db, caused(shown("order", order(id, "succeeded", 1)), "event:2"));
    expect(await blameOfField("order", id, "status")).toEqual({
      value: "succeeded",
      group: "order",
      since: "event:2",
      lost: [],
    });
  });

  test("keeps the first state with its value as its origin, through others that only repeat it", async () => {
    const id = newId();
    for (const n of [1, 2, 3]) {
      const state = { ...order(id, "succeeded", n), description: `${n}` };
      await apply(database.db, caused(shown("order", state), `event:${n}`));
    }
    expect(await blameOfField("order", id, "status")).toMatchObject({ since: "event:1" });
    expect(await blameOfField("order", id, "description")).toMatchObject({ since: "event:3" });
  });

  test("names what came late, in one batch by the order of the events", async () => {
    const id = newId();
    await apply(
      database.db,
      caused(shown("order", order(id, "succeeded", 9)), "event:1"),
      caused(shown("order", order(id, "failed", 5)), "event:2"),
    );
    expect((await blameOfField("order", id, "status")).lost).toEqual([["failed", "older", true]]);
    const inOrder = newId();
    await apply(
      database.db,
      caused(shown("order", order(inOrder, "succeeded", 9)), "event:2"),
      caused(shown("order", order(inOrder, "failed", 5)), "event:1"),
    );
    expect((await blameOfField("order", inOrder, "status")).lost).toEqual([]);
  });

  test("names what a tie decided: by rank, then by a read", async () => {
    const id = newId();
    await apply(database.db, caused(shown("order", order(id, "succeeded", 0)), "event:1"));
    await apply(database.db, caused(shown("order", order(id, "refunded", 0)), "event:2"));
    expect((await blameOfField("order", id, "status")).lost).toEqual([["succeeded", "rank", false]]);
    await apply(database.db, seen("order", order(id, "succeeded", 0), 30));
    expect(await blameOfField("order", id, "status")).toMatchObject({
      value: "succeeded",
      lost: [["refunded", "unread", false]],
    });
  });

  test("names what was dated in the future", async () => {
    const id = newId();
    await apply(database.db, shown("order", order(id, "succeeded", 0)));
    const future = shown("order", order(id, "voided", 90_000));
    await apply(database.db, { ...future, receivedAt: canonicalTimestamp(at(0)) });
    expect((await blameOfField("order", id, "status")).lost).toEqual([["voided", "future", false]]);
  });

  test("is not what a hand wrote into the row, and the column is named", async () => {
    const id = newId();
    await apply(database.db, shown("order", order(id, "succeeded", 0)));
    const untouched = await known("order", id);
    expect(editedColumns(untouched, winnersNow(untouched))).toEqual([]);
    await database.db("mirror.orders").where({ id }).update({ status: "failed", total: 1 });
    const edited = await known("order", id);
    expect(editedColumns(edited, winnersNow(edited))).toEqual(["status", "total"]);
    expect(await blameOfField("order", id, "status")).toMatchObject({ value: "succeeded" });
  });
});

test("the status of a transaction is that of its order's entry where that is later, and says so", async () => {
  const { db } = database;
  await apply(db, seen("transaction", sampleTransaction(), 5));
  const entry = sampleEntry({ status: "chargeback", updated_at: at(60) });
  const disputed = { status: "chargeback", updated_at: at(60), transactions: [entry] };
  await apply(db, caused(shown("order", sampleOrder(disputed)), "event:9"));
  expect(await blameOfField("transaction", "sale-1", "status")).toEqual({
    value: "chargeback",
    group: "transaction.inline",
    since: "event:9",
    lost: [["succeeded", "group", false]],
  });
  expect(await blameOfField("transaction", "sale-1", "amount")).toMatchObject({
    group: "transaction",
    since: "fetch",
  });
});

test("what only events tell of an order's retries survives a read, as a group of its own", async () => {
  const { db } = database;
  const retries = { id: "retried", status: "failed", attempt_count: 3, next_retry_at: at(900) };
  await apply(db, caused(shown("order", sampleOrder(retries)), "event:4"));
  await apply(db, seen("order", sampleOrder({ id: "retried", updated_at: at(9) }), 30));
  expect(await blameOfField("order", "retried", "attempt_count")).toMatchObject({
    value: 3,
    group: "order.dunning",
    since: "event:4",
  });
});

test("a customer's deletion says of which state it is", async () => {
  const { db } = database;
  await apply(db, shown("customer", sampleCustomer({ deleted: true })));
  expect(await blameOfField("customer", "customer-1", "deleted_at")).toMatchObject({
    group: "customer",
  });
});

test("without persons, no part of an object keeps what an erasure would remove", async () => {
  const { db } = database;
  const personal = {
    id: "person",
    email: "ada@example.com",
    first_name: "Ada",
    company: "Lovelace",
  };
  await apply(db, shown("customer", sampleCustomer(personal)));
  const object = await known("customer", "person");
  const bare = withoutPersons(object);
  expect(JSON.stringify(bare)).not.toMatch(/ada|lovelace/i);
  expect(winnersNow(bare).get("customer")?.state.content).toMatchObject({ id: "person" });
});

test("the history is read from the newest on, and goes on before a time", async () => {
  const { db } = database;
  const object = { resource: "order", id: "long" } as const;
  for (let n = 0; n < 5; n++) {
    await apply(db, shown("order", sampleOrder({ id: "long", updated_at: at(n) })));
  }
  const first = await readStatesOf(db, object, { limit: 2 });
  expect(first.hasMore).toBe(true);
  expect(first.states.map(({ updatedAt }) => updatedAt)).toEqual([at(4), at(3)].map(canonicalTimestamp));
  const before = first.states.at(-1)?.updatedAt ?? "";
  const rest = await readStatesOf(db, object, { before, limit: 9 });
  expect(rest.states).toHaveLength(3);
  expect(rest.hasMore).toBe(false);
});

test("an absent field and one that is null are the same, and lists are compared whole", () => {
  expect(changesBetween({ a: { b: 1, c: null }, d: [1] }, { a: { b: 2 }, d: [1], e: null, f: "x" })).toEqual([
    { field: "a.b", from: 1, to: 2 },
    { field: "f", from: undefined, to: "x" },
  ]);
});
