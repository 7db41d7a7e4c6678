import { beforeEach, describe, expect, test } from "vitest";
import {
  findChargeback,
  findOpenChargebacks,
  listEndedChargebacks,
  listOpenKeys,
} from "../../src/core/mirror/chargebacks.ts";
import { readDisputeFacts } from "../../src/core/mirror/dispute-facts.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { emptyMirror } from "./copies.ts";
import { apply, at, sampleEntry, sampleOrder, sampleTransaction, seen, shown } from "./samples.ts";

const database = useTestDatabase();
beforeEach(() => emptyMirror(database.db));

const chargebacks = () => database.db("mirror.chargebacks").select("*");
const time = (seconds: number) => new Date(at(seconds));

const order = (status: string, seconds: number, sale = "succeeded") =>
  shown(
    "order",
    sampleOrder({
      status,
      updated_at: at(seconds),
      transactions: [sampleEntry({ status: sale, updated_at: at(seconds) })],
    }),
  );

describe("a chargeback that order and sale show", () => {
  test("is opened, with the sale's amount, when either shows it first", async () => {
    await apply(database.db, order("succeeded", 0), order("chargeback", 5, "chargeback"));
    expect(await chargebacks()).toMatchObject([
      {
        key: "order-1",
        order_id: "order-1",
        transaction_id: "sale-1",
        state: "opened",
        amount: "1000",
        currency: "usd",
        opened_at: time(5),
        resolved_at: null,
      },
    ]);
  });

  test.each([
    ["chargeback_accepted", "chargeback", { state: "accepted", accepted_at: time(9), dismissed_at: null }],
    ["chargeback_dismissed", "succeeded", { state: "dismissed", dismissed_at: time(9), accepted_at: null }],
    ["chargeback_dismissed", "chargeback", { state: "dismissed", dismissed_at: time(9) }],
  ])("ends with the order's %s, whatever the sale (%s) says", async (status, sale, expected) => {
    await apply(database.db, order("chargeback", 5, "chargeback"));
    await apply(database.db, order(status, 9, sale));
    expect(await chargebacks()).toMatchObject([{ opened_at: time(5), resolved_at: time(9), ...expected }]);
  });

  test("is known with its end also where the opening was never seen", async () => {
    await apply(database.db, order("chargeback_accepted", 9, "chargeback"));
    expect(await chargebacks()).toMatchObject([{ state: "accepted", opened_at: time(9), accepted_at: time(9) }]);
  });

  test("is opened again when the order says so, and closed again", async () => {
    const { db } = database;
    await apply(db, order("chargeback", 5, "chargeback"), order("chargeback_dismissed", 6));
    await apply(db, order("chargeback", 7, "chargeback"));
    expect(await chargebacks()).toMatchObject([
      { state: "opened", opened_at: time(7), dismissed_at: null, resolved_at: null },
    ]);
    await apply(db, order("chargeback_accepted", 8, "chargeback"));
    expect(await chargebacks()).toMatchObject([{ state: "accepted", opened_at: time(7), resolved_at: time(8) }]);
  });

  test("counts as dismissed when the order leaves it without a word, and stays accepted once it was", async () => {
    const { db } = database;
    await apply(db, order("chargeback", 5, "chargeback"), order("partially_refunded", 9));
    expect(await chargebacks()).toMatchObject([{ state: "dismissed", dismissed_at: time(9) }]);
    await emptyMirror(db);
    await apply(db, order("chargeback_accepted", 5, "chargeback"), order("refunded", 9));
    expect(await chargebacks()).toMatchObject([{ state: "accepted", resolved_at: time(5) }]);
  });

  test("follows the order's row where a read settled a tie", async () => {
    const { db } = database;
    await apply(db, order("chargeback_dismissed", 5), order("chargeback_accepted", 5, "chargeback"));
    for (const state of ["accepted", "dismissed"]) {
      const seconds = state === "accepted" ? 10 : 20;
      const object = sampleOrder({ status: `chargeback_${state}`, updated_at: at(5) });
      await apply(db, seen("order", object, seconds));
      expect(await chargebacks()).toMatchObject([{ state, resolved_at: time(5) }]);
    }
  });

  test("of two states at one time remembers the end once the order has left both, whatever their content", async () => {
    const { db } = database;
    // What is equal but for the id has another hash each time.
    const ids = Array.from({ length: 16 }, (_, n) => `order-${n}`);
    const state = (status: string, seconds: number) =>
      ids.map((id) => shown("order", sampleOrder({ id, status, updated_at: at(seconds) })));
    for (const end of ["accepted", "dismissed"]) {
      await emptyMirror(db);
      await apply(db, ...state("chargeback", 5), ...state(`chargeback_${end}`, 5));
      await apply(db, ...state("refunded", 9));
      const states = (await chargebacks()).map((row: { state: string }) => row.state);
      expect(states).toEqual(ids.map(() => end));
    }
  });

  test("has an open status that nobody knows yet", async () => {
    await apply(database.db, order("chargeback_under_review", 5));
    expect(await chargebacks()).toMatchObject([{ state: "opened", opened_at: time(5) }]);
  });
});

test("what happened to a disputed sale has each state again that came again", async () => {
  const { db } = database;
  const states = ["chargeback", "chargeback_dismissed", "chargeback", "chargeback_accepted"];
  for (const [n, status] of states.entries()) {
    await apply(db, shown("order", sampleOrder({ status, updated_at: at(n * 60) })));
    const changed = { status, description: "another", updated_at: at(n * 60 + 10) };
    await apply(db, shown("order", sampleOrder(changed)));
  }
  const found = await findChargeback(db, "order-1");
  const { timeline } = await readDisputeFacts(db, found!);
  expect(timeline.map((state) => [state.at, state.status])).toEqual(states.map((status, n) => [time(n * 60), status]));
});

describe("a chargeback that only one of them shows", () => {
  test("the order alone: the captured sale is the one, else the order's total counts", async () => {
    const { db } = database;
    await apply(db, order("chargeback", 5, "succeeded"));
    expect(await chargebacks()).toMatchObject([{ transaction_id: "sale-1", amount: "1000" }]);
    await emptyMirror(db);
    await apply(db, shown("order", sampleOrder({ status: "chargeback", total: 900 })));
    expect(await chargebacks()).toMatchObject([
      { transaction_id: null, amount: "900", currency: "usd", state: "opened" },
    ]);
  });

  test("the sale alone: opened, then dismissed when it leaves", async () => {
    const { db } = database;
    await apply(db, order("succeeded", 0));
    await apply(db, seen("transaction", sampleTransaction({ status: "chargeback", updated_at: at(3) }), 9));
    expect(await chargebacks()).toMatchObject([
      { key: "order-1", transaction_id: "sale-1", state: "opened", opened_at: time(3) },
    ]);
    await apply(db, seen("transaction", sampleTransaction({ updated_at: at(12) }), 20));
    expect(await chargebacks()).toMatchObject([{ state: "dismissed", resolved_at: time(12) }]);
  });

  test("an entry of an order that did not change itself opens it at the entry's own time", async () => {
    const entry = sampleEntry({ status: "chargeback", updated_at: at(30) });
    await apply(database.db, seen("order", sampleOrder({ transactions: [entry] }), 60));
    expect(await chargebacks()).toMatchObject([{ opened_at: time(30), state: "opened" }]);
  });

  test("a transaction without an order has its own id as key", async () => {
    const { db } = database;
    const orphan = { order_id: null, status: "chargeback", updated_at: at(3) };
    await apply(db, seen("transaction", sampleTransaction(orphan), 9));
    expect(await chargebacks()).toMatchObject([
      { key: "sale-1", order_id: null, transaction_id: "sale-1", state: "opened", amount: "1000" },
    ]);
  });

  test("a sale seen before its order moves to the order's key when that is known", async () => {
    const { db } = database;
    await apply(db, seen("transaction", sampleTransaction({ order_id: null, status: "chargeback" }), 9));
    await apply(db, order("succeeded", 0));
    expect(await chargebacks()).toMatchObject([{ key: "order-1", transaction_id: "sale-1" }]);
  });
});

test("a chargeback never ends before it was opened, though the order's row was set back to an older state", async () => {
  const { db } = database;
  await apply(db, order("succeeded", 0), order("chargeback", 5, "chargeback"));
  await db("mirror.orders").update({ status: "succeeded", source_updated_at: time(0) });
  expect(await chargebacks()).toMatchObject([{ state: "dismissed", opened_at: time(5), resolved_at: time(5) }]);
});

test("a refund's failure and another order's chargeback do not mix in", async () => {
  const { db } = database;
  const refund = sampleEntry({ id: "refund-1", type: "refund", amount: 10 });
  const other = sampleOrder({ id: "order-2", transactions: [sampleEntry({ id: "sale-2" })] });
  await apply(db, shown("order", other));
  await apply(db, shown("order", sampleOrder({ status: "chargeback", transactions: [refund, sampleEntry()] })));
  expect(await chargebacks()).toMatchObject([{ key: "order-1", transaction_id: "sale-1" }]);
  expect(await db("mirror.chargebacks").where("key", "order-2")).toEqual([]);
});

describe("the list of what is to answer", () => {
  const disputed = (id: string, seconds: number, status = "chargeback") =>
    shown(
      "order",
      sampleOrder({
        id,
        status,
        updated_at: at(seconds),
        transactions: [sampleEntry({ id: `${id}-sale`, status: "chargeback", updated_at: at(seconds) })],
      }),
    );
  const keysOf = async (after?: Parameters<typeof listOpenKeys>[1]["after"], limit = 10) =>
    listOpenKeys(database.db, { after, limit });
  const names = async () => (await keysOf()).map(({ key }) => key);

  test("has open ones alone, the oldest first, and goes on behind any of them", async () => {
    const { db } = database;
    await apply(db, disputed("b", 5), disputed("a", 7), disputed("c", 5), disputed("over", 3));
    await apply(db, disputed("over", 9, "chargeback_accepted"));
    const all = await keysOf();
    expect(all.map(({ key }) => key)).toEqual(["b", "c", "a"]);
    const [first] = await keysOf(undefined, 1);
    expect(first).toEqual(all[0]);
    expect((await keysOf(first, 1)).map(({ key }) => key)).toEqual(["c"]);
    expect(await keysOf(all.at(-1))).toEqual([]);
  });

  test("has one that was opened again by its new opening", async () => {
    const { db } = database;
    await apply(db, disputed("b", 50), disputed("a", 10));
    await apply(db, disputed("a", 20, "chargeback_dismissed"));
    await apply(db, disputed("a", 70));
    expect(await keysOf()).toEqual([
      { key: "b", notedAt: `${time(50).getTime()}000` },
      { key: "a", notedAt: `${time(70).getTime()}000` },
    ]);
  });

  test("has one that its sale alone shows, with an order and without", async () => {
    const { db } = database;
    await apply(db, order("succeeded", 0));
    await apply(
      db,
      shown("transaction", sampleTransaction({ status: "chargeback", updated_at: at(5) })),
      shown(
        "transaction",
        sampleTransaction({
          id: "alone",
          order_id: null,
          status: "chargeback",
          updated_at: at(4),
        }),
      ),
    );
    expect(await names()).toEqual(["alone", "order-1"]);
    await apply(db, order("chargeback_dismissed", 9, "chargeback"));
    expect(await names()).toEqual(["alone"]);
  });

  test("sums what is open of what it is asked for", async () => {
    const { db } = database;
    await apply(db, disputed("a", 7), disputed("b", 5), disputed("over", 3, "chargeback_accepted"));
    expect(await findOpenChargebacks(db, ["a", "b", "over", "none"])).toMatchObject([
      { key: "b", amountMinor: 1_000n, currency: "usd", openedAt: time(5) },
      { key: "a", openedAt: time(7) },
    ]);
    expect(await findOpenChargebacks(db, [])).toEqual([]);
  });

  test("of those that ended has what was shown last, and says when there is more", async () => {
    const { db } = database;
    await apply(db, disputed("won", 3), disputed("lost", 2), disputed("open", 1));
    await apply(db, disputed("won", 8, "chargeback_dismissed"));
    await apply(db, disputed("lost", 9, "chargeback_accepted"));
    const ended = async (seconds: number, lookThrough: number) => {
      const found = await listEndedChargebacks(db, { since: time(seconds), lookThrough });
      return [found.ended.map(({ key, state }) => [key, state]), found.isCut];
    };
    const [lost, won] = [
      ["lost", "accepted"],
      ["won", "dismissed"],
    ];
    expect(await ended(0, 10)).toEqual([[lost, won], false]);
    expect(await ended(9, 10)).toEqual([[lost], false]);
    expect(await ended(0, 1)).toEqual([[lost], true]);
  });
});
