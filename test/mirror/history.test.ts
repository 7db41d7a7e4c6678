import { beforeEach, describe, expect, test } from "vitest";
import { applySnapshots } from "../../src/core/mirror/write/apply.ts";
import { retryOnConflict } from "../../src/platform/postgres/transactions.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { untilWaiting } from "../support/until-waiting.ts";
import { emptyMirror } from "./copies.ts";
import {
  apply,
  at,
  rowOf,
  sampleEntry,
  sampleOrder,
  sampleSubscription,
  sampleTransaction,
  seen,
  shown,
} from "./samples.ts";

const database = useTestDatabase();
beforeEach(() => emptyMirror(database.db));

const versions = (columns = ["resource", "id", "cause"]) =>
  database.db("mirror.versions").select(columns).orderBy(columns);

describe("the history", () => {
  test("keeps every distinct state, also one that lost, once", async () => {
    const { db } = database;
    const states = ["succeeded", "pending", "refunded", "pending"].map((status, n) =>
      shown("order", sampleOrder({ status, updated_at: at(status === "pending" ? 0 : n + 1) })),
    );
    await apply(db, ...states);
    await apply(db, ...states);
    const rows = await db("mirror.versions").orderBy("source_updated_at").pluck("data");
    expect(rows).toMatchObject([{ status: "pending" }, { status: "succeeded" }, { status: "refunded" }]);
  });

  test("has an unchanged entry of an order once, however often the order changed", async () => {
    const { db } = database;
    for (const seconds of [0, 5, 9]) {
      const order = sampleOrder({ updated_at: at(seconds), transactions: [sampleEntry()] });
      await apply(db, shown("order", order));
    }
    expect((await versions(["resource"])).map(({ resource }: { resource: string }) => resource)).toEqual([
      "order",
      "order",
      "order",
      "transaction.inline",
    ]);
  });

  test("says who saw a state first", async () => {
    const { db } = database;
    await apply(db, { ...shown("order", sampleOrder()), cause: "event:7" });
    await apply(db, seen("order", sampleOrder(), 9));
    expect(await versions()).toEqual([{ resource: "order", id: "order-1", cause: "event:7" }]);
  });

  test("has each state's own cause and times where the states of one row came with several events", async () => {
    const { db } = database;
    const own = { updated_at: at(3), metadata: { note: "a\0b" } };
    await apply(
      db,
      { ...shown("order", sampleOrder({ updated_at: at(5), attempt_count: 2 })), cause: "event:7" },
      {
        ...shown("order", sampleOrder({ updated_at: at(9), transactions: [sampleEntry(own)] })),
        cause: "event:8",
      },
    );
    const columns = ["resource", "cause", "source_updated_at", "replaced_text"];
    const state = (resource: string, cause: string, seconds: number, replaced_text = false) => {
      return { resource, cause, source_updated_at: new Date(at(seconds)), replaced_text };
    };
    expect(await versions(columns)).toEqual([
      state("order", "event:7", 5),
      state("order", "event:8", 9),
      state("order.dunning", "event:7", 5),
      state("transaction.inline", "event:8", 3, true),
    ]);
    const order = await rowOf(db, "orders", "order-1");
    expect(order).toMatchObject({ last_cause: "event:8", updated_at: new Date(at(9)) });
    expect(await rowOf(db, "transactions", "sale-1")).toMatchObject({
      last_cause: "event:8",
      updated_at: new Date(at(3)),
    });
  });

  const changes = [
    ["update", "update mirror.versions set cause = 'x'"],
    ["delete", "delete from mirror.versions"],
  ] as const;

  test.each([...changes, ["truncate", "truncate mirror.versions"] as const])("refuses to %s", async (_name, sql) => {
    await apply(database.db, shown("order", sampleOrder()));
    await expect(database.db.raw(sql)).rejects.toMatchObject({ code: "23001" });
    expect(await versions()).toHaveLength(1);
  });

  test.each(changes)("allows an erasure to %s, in its transaction only", async (_name, sql) => {
    const { db } = database;
    await apply(db, shown("order", sampleOrder()));
    await db.transaction(async (trx) => {
      await trx.raw("set local tallyhook.erasure = 'on'");
      const { rowCount } = await trx.raw<{ rowCount: number }>(sql);
      expect(rowCount).toBe(1);
    });
    await apply(db, shown("order", sampleOrder({ updated_at: at(5) })));
    await expect(db.raw(sql)).rejects.toMatchObject({ code: "23001" });
  });

  test("does not even allow an erasure to empty it all", async () => {
    const erasure = database.db.transaction(async (trx) => {
      await trx.raw("set local tallyhook.erasure = 'on'");
      await trx.raw("truncate mirror.versions");
    });
    await expect(erasure).rejects.toMatchObject({ code: "23001" });
  });
});

describe("a tie", () => {
  const one = shown("order", sampleOrder({ description: "one" }));
  const two = shown("order", sampleOrder({ description: "two" }));
  const tie = { resource: "order", id: "order-1", updatedAt: "2025-03-01T12:00:00.000000Z" };
  const tiesOf = async (...observations: Parameters<typeof applySnapshots>[1][number][]) =>
    (await apply(database.db, ...observations)).ties;

  test("is two states of one time, in one batch or in two, and is reported once", async () => {
    expect(await tiesOf(one, two)).toEqual([tie]);
    expect(await tiesOf(one, two)).toEqual([]);
    await emptyMirror(database.db);
    expect(await tiesOf(one)).toEqual([]);
    expect(await tiesOf(two)).toEqual([tie]);
  });

  test("is two failures of a subscription that is the same otherwise, too", async () => {
    const failing = (failure_reason: string) =>
      shown("subscription", sampleSubscription({ status: "past_due", failure_reason }));
    const expected = [{ ...tie, resource: "subscription", id: "subscription-1" }];
    expect(await tiesOf(failing("declined"), failing("expired"))).toEqual(expected);
  });

  test("is none between equal states, other times, or other objects", async () => {
    expect(await tiesOf(one, one, { ...one, cause: "event:2" })).toEqual([]);
    expect(await tiesOf(shown("order", sampleOrder({ updated_at: at(1) })))).toEqual([]);
    expect(await tiesOf(shown("order", sampleOrder({ id: "order-2", total: 1 })))).toEqual([]);
  });

  test("is settled by a read that came late enough, and not by one of the same two seconds", async () => {
    const { db } = database;
    const asRead = sampleOrder({ description: "read" });
    expect(await tiesOf(one, seen("order", asRead, 1))).toEqual([tie]);
    expect(await tiesOf(seen("order", asRead, 2))).toEqual([]);
    await emptyMirror(db);
    expect(await tiesOf(one)).toEqual([]);
    expect(await tiesOf(seen("order", asRead, 2))).toEqual([]);
    expect(await db("mirror.orders").pluck("description")).toEqual(["read"]);
  });

  test("of an entry is settled by reading its order", async () => {
    const order = (status: string, seconds: number) =>
      shown("order", sampleOrder({ updated_at: at(seconds), transactions: [sampleEntry({ status })] }));
    // What orders the entry is its order's time: only an answer dated after that is certain to show it.
    const later = { ...tie, updatedAt: "2025-03-01T12:00:05.000000Z" };
    expect(await tiesOf(order("succeeded", 3), order("chargeback", 5))).toEqual([later]);
  });

  test("of fields that no read shows is none", async () => {
    const failed = (next_retry_at: string) => shown("order", sampleOrder({ attempt_count: 1, next_retry_at }));
    expect(await tiesOf(failed(at(10)), failed(at(20)))).toEqual([]);
  });
});

describe("two workers on one object at the same moment", () => {
  const first = shown("order", sampleOrder({ description: "one" }));
  const second = shown("order", sampleOrder({ description: "two" }));

  test("see each other's state: whoever comes second reports the tie", async () => {
    const { db } = database;
    const slow = await db.transaction();
    const early = await applySnapshots(slow, [first]);
    // As workers do: a row that was made meanwhile is tried again.
    const waiting = retryOnConflict({ random: () => 0 }, () => apply(db, second));
    await untilWaiting(db, 1);
    await slow.commit();
    expect([early.ties, (await waiting).ties].flat()).toMatchObject([{ id: "order-1" }]);
  });

  test("close no circle of locks where each makes a row that the other has or waits for", async () => {
    const { db } = database;
    const state = (id: string, seconds: number) => shown("order", sampleOrder({ id, updated_at: at(seconds) }));
    const ahead = await db.transaction();
    await applySnapshots(ahead, [state("b", 1)]);
    // It makes "a" and waits for "b"; for it there was no "c" when it began.
    const maker = apply(db, state("a", 2), state("b", 2), state("c", 2)).catch((error: unknown) => error);
    await untilWaiting(db, 1);
    await apply(db, state("c", 1));
    // It holds "c" and waits for "a".
    const other = apply(db, state("a", 3), state("c", 3));
    await untilWaiting(db, 2);
    await ahead.rollback();
    expect(await maker).toMatchObject({
      code: "40001",
      message: "mirror.orders c was made by another transaction meanwhile",
    });
    await other;
    expect(await db("mirror.orders").orderBy("id").pluck("id")).toEqual(["a", "c"]);
  });

  test("lose nothing of each other, nor of a chargeback that one of them half knows", async () => {
    const { db } = database;
    const slow = await db.transaction();
    await applySnapshots(slow, [shown("order", sampleOrder({ status: "chargeback", updated_at: at(9) }))]);
    await apply(db, seen("transaction", sampleTransaction({ status: "chargeback", updated_at: at(5) }), 60));
    await slow.commit();
    expect(await db("mirror.chargebacks").select("key", "transaction_id", "opened_at")).toEqual([
      { key: "order-1", transaction_id: "sale-1", opened_at: new Date(at(5)) },
    ]);
  });
});
