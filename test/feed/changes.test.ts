import fc from "fast-check";
import { beforeEach, describe, expect, inject, test } from "vitest";
import { type Change, readChanges, readableUntil } from "../../src/core/mirror/changes/read-changes.ts";
import { customer } from "../../src/core/mirror/resources/customer.ts";
import { applySnapshots, applyStates } from "../../src/core/mirror/write/apply.ts";
import { seededRandom } from "../../src/platform/random.ts";
import { emptyMirror } from "../mirror/copies.ts";
import {
  apply,
  at,
  sampleCustomer,
  sampleEntry,
  sampleOrder,
  sampleSubscription,
  sampleTransaction,
  seen,
  shown,
} from "../mirror/samples.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { emptyTables } from "../support/empty-tables.ts";

const database = useTestDatabase();
beforeEach(() => emptyMirror(database.db));

const orderAt = (id: string, seconds: number, fields = {}) =>
  shown("order", sampleOrder({ id, updated_at: at(seconds), ...fields }), at(seconds));

describe("a reader of the feed", () => {
  test("waits for a change with a lower number that has not been committed, and then has both", async () => {
    const { db } = database;
    const after = await readableUntil(db);
    const slow = await db.transaction();
    await applySnapshots(slow, [orderAt("order-slow", 0)]);
    await apply(db, orderAt("order-fast", 0));
    expect(await readChanges(db, { after, limit: 100 })).toEqual({
      changes: [],
      position: after,
      hasMore: false,
    });
    await slow.commit();
    const { changes } = await readChanges(db, { after, limit: 100 });
    expect(changes.map(({ id, kind }) => `${id} ${kind}`)).toEqual([
      "order-slow order.created",
      "order-slow order.paid",
      "order-fast order.created",
      "order-fast order.paid",
    ]);
  });

  test("goes on past the number of a transaction that was rolled back", async () => {
    const { db } = database;
    const after = await readableUntil(db);
    const failed = await db.transaction();
    await applySnapshots(failed, [orderAt("order-failed", 0)]);
    await apply(db, orderAt("order-fast", 0));
    await failed.rollback();
    const { changes, position } = await readChanges(db, { after, limit: 100 });
    expect(new Set(changes.map(({ id }) => id))).toEqual(new Set(["order-fast"]));
    expect(position).toBe(changes.at(-1)?.seq);
  });

  test("does not wait for a transaction that writes elsewhere, however long it takes", async () => {
    const { db } = database;
    const after = await readableUntil(db);
    const other = await db.transaction();
    await other("receiver.probes")
      .insert({})
      .returning("*")
      .catch(() => {});
    await other.raw("select pg_current_xact_id()").catch(() => {});
    await apply(db, orderAt("order-1", 0));
    expect((await readChanges(db, { after, limit: 100 })).changes).toHaveLength(2);
    await other.rollback();
  });

  test("takes a page at a time, and kinds of its choice", async () => {
    const { db } = database;
    const after = await readableUntil(db);
    await apply(db, orderAt("order-1", 0), orderAt("order-2", 0), orderAt("order-3", 0));
    const read = async (limit: number, kinds?: string[]): Promise<Change[][]> => {
      const pages: Change[][] = [];
      for (let position = after, hasMore = true; hasMore;) {
        const page = await readChanges(db, {
          after: position,
          limit,
          ...(kinds === undefined ? {} : { kinds }),
        });
        ({ position, hasMore } = page);
        pages.push(page.changes);
      }
      return pages;
    };
    expect((await read(4)).map(({ length }) => length)).toEqual([4, 2]);
    expect((await read(4, ["order.paid"])).flat().map(({ id }) => id)).toEqual(["order-1", "order-2", "order-3"]);
  });

  const writers = inject("isTorture") ? 40 : 12;

  test(`misses nothing while ${writers} writers commit and roll back in any order, and each object's changes are in its order`, async () => {
    const { db } = database;
    await fc.assert(
      fc.asyncProperty(fc.integer(), async (seed) => {
        await emptyMirror(db);
        const random = seededRandom(seed);
        const start = await readableUntil(db);
        const seen: Change[] = [];
        let isWriting = true;
        const reader = (async () => {
          for (let position = start, isLast = false; ;) {
            const wasWriting = isWriting;
            const page = await readChanges(db, { after: position, limit: 7 });
            ({ position } = page);
            seen.push(...page.changes);
            if (isLast && !page.hasMore) return;
            isLast = !wasWriting;
          }
        })();
        const write = async (writer: number): Promise<void> => {
          for (let n = 0; n < 4; n++) {
            const trx = await db.transaction();
            // One object of its own, and one that all of them change.
            const seconds = n * 1_000 + writer;
            await applySnapshots(trx, [orderAt(`order-${writer}-${n}`, 0), orderAt("order-hot", seconds)]).catch(
              () => {},
            );
            await (random() < 0.3 ? trx.rollback() : trx.commit()).catch(() => {});
          }
        };
        await Promise.all(Array.from({ length: 3 }, (_, lane) => lanes(lane, write)));
        isWriting = false;
        await reader;
        const stored = await db("feed.changes").where("seq", ">", start).orderBy("seq").pluck("seq");
        expect(seen.map(({ seq }) => seq)).toEqual(stored.map(Number));
        const times = seen.flatMap(({ id, state }) => (id === "order-hot" ? [state?.at.getTime()] : []));
        expect(times).toEqual(times.toSorted((a = 0, b = 0) => a - b));
      }),
      { numRuns: 3 },
    );
  });

  async function lanes(lane: number, write: (writer: number) => Promise<void>): Promise<void> {
    for (let writer = lane; writer < writers; writer += 3) await write(writer);
  }
});

describe("a refund", () => {
  const refund = (id: string, fields = {}) =>
    sampleEntry({ id, type: "refund", amount: 300, updated_at: at(10), ...fields });
  const refunded = (seconds: number, ...refunds: object[]) =>
    orderAt("order-1", seconds, {
      status: "partially_refunded",
      transactions: [sampleEntry(), ...refunds],
    });
  const told = async () =>
    (await database.db("feed.changes").where("kind", "order.refunded").orderBy("seq")).map(
      ({ id, transaction_id, amount, is_superseded }) => ({
        id,
        transaction_id,
        amount: Number(amount),
        is_superseded,
      }),
    );

  test("is told of its order, with its own amount, once, whatever repeats it", async () => {
    const { db } = database;
    await apply(db, refunded(10, refund("refund-1")));
    await apply(db, refunded(20, refund("refund-1"), refund("refund-2", { amount: 50 })));
    await apply(db, refunded(30, refund("refund-1"), refund("refund-2", { amount: 50 })));
    expect(await told()).toEqual([
      { id: "order-1", transaction_id: "refund-1", amount: 300, is_superseded: false },
      { id: "order-1", transaction_id: "refund-2", amount: 50, is_superseded: false },
    ]);
  });

  test("that is still on its way is told when it has succeeded", async () => {
    const { db } = database;
    await apply(db, refunded(10, refund("refund-1", { status: "pending" })));
    expect(await told()).toEqual([]);
    await apply(db, refunded(20, refund("refund-1", { updated_at: at(20) })));
    expect(await told()).toHaveLength(1);
  });

  test("that the mirror had before there was a feed is not told when its state comes again", async () => {
    const { db } = database;
    await apply(db, refunded(10, refund("refund-1")));
    await emptyTables(db, ["feed.changes", "feed.facts"]);
    await apply(db, refunded(20, refund("refund-1", { updated_at: at(20) })));
    expect(await told()).toEqual([]);
  });
});

test("a dispute that is learned late is told as superseded, and changes nothing else", async () => {
  const { db } = database;
  await apply(db, orderAt("order-1", 20, { status: "refunded" }));
  const after = await readableUntil(db);
  await apply(db, orderAt("order-1", 10, { status: "chargeback" }));
  const { changes } = await readChanges(db, { after, limit: 10 });
  expect(changes).toMatchObject([{ id: "order-1", kind: "order.disputed", isSuperseded: true, state: null }]);
});

describe("states of one object that come together are told as if they had come one by one", () => {
  /** Of what was written since, each change in short. */
  async function toldOf(work: () => Promise<unknown>): Promise<string[]> {
    const { db } = database;
    const after = await readableUntil(db);
    await work();
    const { changes } = await readChanges(db, { after, limit: 100 });
    return changes
      .filter(({ resource }) => resource !== "transaction")
      .map(({ kind, fromStatus, toStatus, state, isSuperseded }) => {
        const seconds = state === null ? null : (state.at.getTime() - Date.parse(at(0))) / 1_000;
        return `${kind} ${fromStatus} → ${toStatus} at ${seconds}${isSuperseded ? " late" : ""}`;
      });
  }
  const orders = (...states: [number, object][]) =>
    states.map(([seconds, fields]) => orderAt("order-1", seconds, fields));

  test("an order that is declined, paid and voided", async () => {
    const { db } = database;
    const states = orders(
      [0, { status: "pending" }],
      [10, { status: "failed" }],
      [20, { status: "succeeded" }],
      [30, { status: "voided" }],
    );
    const told = [
      "order.created null → failed at 10",
      "order.failed null → failed at 10",
      "order.paid failed → succeeded at 20",
      "order.voided succeeded → voided at 30",
    ];
    expect(await toldOf(() => apply(db, ...states))).toEqual(told);
    await emptyMirror(db);
    expect(await toldOf(() => apply(db, ...states.toReversed()))).toEqual(told);
  });

  test("each declined attempt, with its number", async () => {
    const { db } = database;
    const declined = (seconds: number, attempts: number): [number, object] => [
      seconds,
      { status: "failed", attempt_count: attempts, next_retry_at: at(9_999) },
    ];
    await apply(db, ...orders(declined(0, 1)));
    const rest = orders(declined(10, 2), declined(20, 3), [30, { status: "succeeded" }]);
    expect(await toldOf(() => apply(db, ...rest))).toEqual([
      "order.failed failed → failed at 10",
      "order.failed failed → failed at 20",
      "order.paid failed → succeeded at 30",
    ]);
  });

  test("a dispute, its end and what followed", async () => {
    const { db } = database;
    await apply(db, ...orders([0, {}]));
    const rest = orders(
      [10, { status: "chargeback" }],
      [20, { status: "chargeback_accepted" }],
      [30, { status: "refunded" }],
    );
    expect(await toldOf(() => apply(db, ...rest))).toEqual([
      "order.disputed succeeded → chargeback at 10",
      "order.dispute_lost chargeback → chargeback_accepted at 20",
      "order.updated chargeback_accepted → refunded at 30",
    ]);
  });

  test("a dispute that is opened and accepted at one time", async () => {
    const { db } = database;
    await apply(db, ...orders([0, {}]));
    const rest = orders([10, { status: "chargeback" }], [10, { status: "chargeback_accepted" }]);
    expect(await toldOf(() => apply(db, ...rest))).toEqual([
      "order.disputed succeeded → chargeback at 10",
      "order.dispute_lost chargeback → chargeback_accepted at 10",
    ]);
  });

  test("a subscription through its life, each renewal", async () => {
    const { db } = database;
    const life: [number, object][] = [
      [0, { status: "active", current_billing_cycle: 1 }],
      [10, { status: "active", current_billing_cycle: 2 }],
      [20, { status: "past_due", current_billing_cycle: 2 }],
      [30, { status: "active", current_billing_cycle: 3 }],
      [40, { status: "paused", current_billing_cycle: 3 }],
      [50, { status: "canceled", current_billing_cycle: 3 }],
    ];
    const states = life.map(([seconds, fields]) =>
      shown("subscription", sampleSubscription({ updated_at: at(seconds), ...fields })),
    );
    expect(await toldOf(() => apply(db, ...states))).toEqual([
      "subscription.created null → active at 0",
      "subscription.started null → active at 0",
      "subscription.renewed active → active at 10",
      "subscription.past_due active → past_due at 20",
      "subscription.renewed past_due → active at 30",
      "subscription.recovered past_due → active at 30",
      "subscription.paused active → paused at 40",
      "subscription.canceled paused → canceled at 50",
    ]);
  });

  test("but a state that is older than the row is none of its steps, and what nobody is told of is no change", async () => {
    const { db } = database;
    await apply(db, ...orders([20, {}]));
    const rest = orders([10, { status: "failed" }], [30, { description: "a" }], [40, {}]);
    expect(await toldOf(() => apply(db, ...rest))).toEqual(["order.updated succeeded → succeeded at 40"]);
    const late = orders([5, { status: "chargeback" }], [50, { description: "b" }]);
    expect(await toldOf(() => apply(db, ...late))).toEqual([
      "order.updated succeeded → succeeded at 50",
      "order.disputed succeeded → succeeded at 50 late",
    ]);
  });
});

test("a refund that fails is told, each attempt, and then the one that succeeds", async () => {
  const { db } = database;
  const after = await readableUntil(db);
  const attempt = (id: string, seconds: number, status: string) =>
    sampleEntry({
      id,
      type: "refund",
      status,
      amount: 300,
      created_at: at(seconds),
      updated_at: at(seconds),
    });
  const attempts = [
    attempt("refund-c", 10, "failed"),
    attempt("refund-b", 20, "failed"),
    attempt("refund-a", 30, "succeeded"),
  ];
  const transactions = (some: object[]) => ({ transactions: [sampleEntry(), ...some] });
  await apply(
    db,
    orderAt("order-1", 10, { status: "refund_failed", ...transactions(attempts.slice(0, 1)) }),
    orderAt("order-1", 30, { status: "partially_refunded", ...transactions(attempts) }),
  );
  const { changes } = await readChanges(db, { after, limit: 100 });
  expect(changes.filter(({ resource }) => resource === "order")).toMatchObject([
    { kind: "order.created" },
    { kind: "order.paid" },
    { kind: "order.refund_failed", transactionId: "refund-c", amount: 300 },
    { kind: "order.refund_failed", transactionId: "refund-b", amount: 300 },
    { kind: "order.refunded", transactionId: "refund-a", amount: 300 },
  ]);
});

test("a row that was changed by hand is mended without telling again what had been told", async () => {
  const { db } = database;
  await apply(db, orderAt("order-1", 10));
  await db("mirror.orders").where({ id: "order-1" }).update({ status: "failed" });
  const after = await readableUntil(db);
  await apply(db, seen("order", sampleOrder({ updated_at: at(10) }), 30));
  expect((await readChanges(db, { after, limit: 10 })).changes).toMatchObject([
    { kind: "order.updated", fromStatus: "failed", toStatus: "succeeded" },
  ]);
});

test("a sale that is known from its order is not changed by its first own read, but by what that shows of it", async () => {
  const { db } = database;
  const read = (id: string, fields: object) =>
    seen("transaction", sampleTransaction({ id, order_id: id, updated_at: at(10), ...fields }), 30);
  for (const id of ["same", "moved"]) {
    await apply(db, orderAt(id, 10, { transactions: [sampleEntry({ id, updated_at: at(10) })] }));
  }
  const after = await readableUntil(db);
  await apply(db, read("same", {}), read("moved", { status: "chargeback" }));
  expect((await readChanges(db, { after, limit: 10 })).changes).toMatchObject([
    { id: "moved", kind: "transaction.updated", toStatus: "chargeback" },
  ]);
  const { position } = await readChanges(db, { after, limit: 10 });
  await apply(db, read("same", { description: "another", updated_at: at(40) }));
  expect((await readChanges(db, { after: position, limit: 10 })).changes).toMatchObject([
    { id: "same", kind: "transaction.updated" },
  ]);
});

test("a customer who was deleted is not changed by the absence that follows", async () => {
  const { db } = database;
  const gone = sampleCustomer({ id: "gone", deleted: true, updated_at: at(10) });
  await apply(db, shown("customer", gone));
  const after = await readableUntil(db);
  const absent = customer.absence?.state("gone", "2025-03-01T12:00:50.000000Z", "reconcile:1");
  if (absent === undefined) throw new Error("customers can be absent");
  await db.transaction((trx) => applyStates(trx, [absent]));
  expect((await readChanges(db, { after, limit: 10 })).changes).toEqual([]);
});

test("a state that comes late and a repeat make no change", async () => {
  const { db } = database;
  await apply(db, orderAt("order-1", 20));
  const after = await readableUntil(db);
  await apply(db, orderAt("order-1", 20));
  await apply(db, orderAt("order-1", 10, { status: "pending" }));
  expect((await readChanges(db, { after, limit: 10 })).changes).toEqual([]);
});
