import { beforeEach, describe, expect, test } from "vitest";
import { inTransaction } from "../../../src/platform/postgres/transactions.ts";
import {
  beat,
  endOrder,
  lastOrder,
  leave,
  openOrder,
  orderRun,
  orderTakers,
  takeOrder,
  withdrawOrder,
} from "../../../src/parts/reconcile/runs/run-orders.ts";
import { untilWaiting } from "../../support/until-waiting.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { emptyTables } from "../../support/empty-tables.ts";

const database = useTestDatabase();
const nightly = {
  kind: "nightly",
  rangeFrom: null,
  rangeTo: null,
  reportOnly: false,
  orderedBy: "ada@example.com",
} as const;

beforeEach(() => emptyTables(database.db, ["reconcile.run_orders", "reconcile.order_takers"]));

describe("an order", () => {
  test("is open until it ends, and only one is", async () => {
    const { db } = database;
    expect(await openOrder(db)).toBeNull();
    const order = await orderRun(db, nightly);
    expect(order).toMatchObject({ ...nightly, endedAt: null });
    expect(await orderRun(db, { ...nightly, kind: "full" })).toBeNull();
    expect(await openOrder(db)).toEqual(order);
    expect(await endOrder(db, order?.id ?? 0, { outcome: "failed", error: "no service" })).toBe(true);
    expect(await endOrder(db, order?.id ?? 0, { outcome: "done" })).toBe(false);
    expect(await openOrder(db)).toBeNull();
    expect(await lastOrder(db)).toMatchObject({ outcome: "failed", error: "no service" });
    expect(await orderRun(db, nightly)).not.toBeNull();
  });

  test("of two people at once is one order", async () => {
    const { db } = database;
    const made = await Promise.all([1, 2, 3, 4].map(() => orderRun(db, nightly)));
    expect(made.filter((order) => order !== null)).toHaveLength(1);
  });

  test("is taken back as long as no run has begun for it", async () => {
    const { db } = database;
    const { id = 0, runKey } = (await orderRun(db, nightly)) ?? {};
    const [run] = await db("reconcile.runs")
      .insert({ run_key: runKey, kind: "nightly", t0: new Date(0) })
      .returning<{ id: string }[]>("id");
    const withdraw = () => inTransaction(db, (trx) => withdrawOrder(trx, id));
    expect(await withdraw()).toEqual({ outcome: "begun", run: Number(run?.id) });
    await db("reconcile.runs").delete();
    expect(await withdraw()).toEqual({ outcome: "withdrawn" });
    expect(await withdraw()).toEqual({ outcome: "ended", as: "withdrawn" });
    expect(await inTransaction(db, (trx) => takeOrder(trx, id))).toBe(false);
    expect(await inTransaction(db, (trx) => withdrawOrder(trx, id + 1))).toBeNull();
  });

  test("whose run is being opened cannot be taken back any more", async () => {
    const { db } = database;
    const { id = 0, runKey } = (await orderRun(db, nightly)) ?? {};
    const { withdrawn, run } = await inTransaction(db, async (trx) => {
      expect(await takeOrder(trx, id)).toBe(true);
      const [row] = await trx("reconcile.runs")
        .insert({ run_key: runKey, kind: "nightly", t0: new Date(0) })
        .returning<{ id: string }[]>("id");
      const beside = inTransaction(db, (other) => withdrawOrder(other, id));
      await untilWaiting(db);
      return { withdrawn: { beside }, run: Number(row?.id) };
    });
    expect(await withdrawn.beside).toEqual({ outcome: "begun", run });
    await db("reconcile.runs").delete();
  });

  test("that is being taken back is not begun", async () => {
    const { db } = database;
    const { id = 0 } = (await orderRun(db, nightly)) ?? {};
    const { begun } = await inTransaction(db, async (trx) => {
      expect(await withdrawOrder(trx, id)).toEqual({ outcome: "withdrawn" });
      const beside = inTransaction(db, (other) => takeOrder(other, id));
      await untilWaiting(db);
      return { begun: { beside } };
    });
    expect(await begun.beside).toBe(false);
  });
});

describe("who takes orders", () => {
  test("is there from its first beat until it leaves", async () => {
    const { db } = database;
    expect(await orderTakers(db)).toEqual({ alive: 0, lastSeenAt: null });
    await beat(db);
    await beat(db);
    expect(await orderTakers(db)).toEqual({ alive: 1, lastSeenAt: expect.any(Date) });
    await leave(db);
    expect(await orderTakers(db)).toEqual({ alive: 0, lastSeenAt: null });
  });

  test("is not there a minute after its last beat, and is forgotten after a day", async () => {
    const { db } = database;
    await db("reconcile.order_takers").insert([
      { host: "a", pid: 1, seen_at: db.raw("now() - interval '61 s'") },
      { host: "b", pid: 1, seen_at: db.raw("now() - interval '25 h'") },
    ]);
    expect(await orderTakers(db)).toMatchObject({ alive: 0 });
    await beat(db);
    expect(await orderTakers(db)).toMatchObject({ alive: 1 });
    expect(await db("reconcile.order_takers").whereIn("host", ["a", "b"]).pluck("host")).toEqual(["a"]);
  });
});
