import { beforeEach, describe, expect, test } from "vitest";
import { requestRefetches } from "../../src/core/inbox/refetch.ts";
import { countByState, countOpenWork, failedEventsOf, findEvents } from "../../src/core/inbox/queries.ts";
import { emptyInbox, storeRow } from "./stored-events.ts";
import { useTestDatabase } from "../support/use-database.ts";

const database = useTestDatabase();
beforeEach(() => emptyInbox(database.db));

test("the failed events of an object are those that may still be applied, or are dead, the newest first", async () => {
  const order = { type: "order.paid", resourceType: "order", resourceId: "ord_1" };
  const dead = await storeRow(database.db, { ...order, state: "dead" });
  await storeRow(database.db, { ...order, state: "applied" });
  await storeRow(database.db, { ...order, state: "dead", resourceType: "customer" });
  await storeRow(database.db, { state: "dead" });
  const failed = await storeRow(database.db, { ...order, state: "failed" });
  const found = await failedEventsOf(database.db, { resource: "order", id: "ord_1" }, 5);
  expect(found).toEqual([
    { seq: failed, type: "order.paid", state: "failed", receivedAt: expect.any(Date) },
    { seq: dead, type: "order.paid", state: "dead", receivedAt: expect.any(Date) },
  ]);
  expect(await failedEventsOf(database.db, { resource: "order", id: "ord_1" }, 1)).toHaveLength(1);
});

describe("finding", () => {
  test("gives every body of an id, and a row by its number", async () => {
    const [a, b] = ["1", "2"].map((text) => Buffer.from(text));
    const first = await storeRow(database.db, { eventId: "evt_1", raw: a! });
    const second = await storeRow(database.db, { eventId: "evt_1", raw: b! });
    expect(await findEvents(database.db, "evt_1")).toMatchObject([
      { seq: first, raw: a },
      { seq: second, raw: b },
    ]);
    expect(await findEvents(database.db, String(second))).toMatchObject([{ seq: second, raw: b }]);
  });

  test("an id made of digits and a number that is the same are both found", async () => {
    const seq = await storeRow(database.db);
    const other = await storeRow(database.db, { eventId: String(seq) });
    expect((await findEvents(database.db, String(seq))).map((row) => row.seq)).toEqual([seq, other]);
  });

  test.each(["evt_none", "", "-1", "1.5", "1e3", "99999999999999999999", "' or true --", "ü"])(
    "finds nothing for %j",
    async (text) => {
      await storeRow(database.db);
      expect(await findEvents(database.db, text)).toEqual([]);
    },
  );
});

test("counts every state, also those without events", async () => {
  await storeRow(database.db);
  await storeRow(database.db);
  await storeRow(database.db, { state: "dead" });
  expect(await countByState(database.db)).toEqual({
    received: 2,
    applied: 0,
    stale: 0,
    ignored: 0,
    failed: 0,
    dead: 1,
  });
});

test("open work is what is received or failed, and every read that is wanted", async () => {
  expect(await countOpenWork(database.db)).toEqual({ events: 0, fetches: 0 });
  for (const state of ["received", "failed", "dead", "applied", "stale", "ignored"] as const) {
    await storeRow(database.db, { state });
  }
  await requestRefetches(database.db, [{ resource: "order", id: "ord_1", reason: "thin", notBefore: null }]);
  expect(await countOpenWork(database.db)).toEqual({ events: 2, fetches: 1 });
});
