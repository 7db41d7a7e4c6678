import { beforeEach, describe, expect, test } from "vitest";
import { closeMonth } from "../../../src/parts/reports/close/close-month.ts";
import { defaultAccounts } from "../../../src/parts/reports/base/account-map.ts";
import { latestAsOf } from "../../../src/parts/reports/base/period.ts";
import { findChargebacks } from "../../../src/core/mirror/chargebacks.ts";
import { apply, at, sampleOrder, sampleTransaction, seen } from "../../mirror/samples.ts";
import { type TestDatabase, createTestDatabase } from "../../support/database.ts";
import { ask } from "../ask.ts";
import { coverAll } from "../coverage.ts";
import { letTimePass } from "../sandbox-history.ts";

const march = { from: "2025-03-01", to: "2025-03-31" };
const day = 86_400;
let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase();
  return () => database.destroy();
});

/** The order with its two sales of 40.00, and 15.00 given back, as read at a time. */
async function read(
  seconds: number,
  { order, sales }: { order: string; sales: readonly [first: string, second: string] },
): Promise<void> {
  const updated_at = at(seconds);
  const card = { id: "card", card_brand: "visa", card_last_four: "1111" };
  const sale = (nth: 0 | 1) =>
    sampleTransaction({
      id: `sale-${nth + 1}`,
      amount: 4_000,
      status: sales[nth],
      created_at: at(nth),
      updated_at: sales[nth] === "succeeded" && order === "partially_refunded" ? at(nth) : updated_at,
    });
  await apply(
    database.db,
    seen(
      "order",
      sampleOrder({
        status: order,
        subtotal: 8_000,
        discount_amount: 0,
        total: 8_000,
        payment_method: card,
        updated_at,
      }),
      seconds + 5,
    ),
    seen("transaction", sale(0), seconds + 5),
    seen("transaction", sale(1), seconds + 5),
    seen(
      "transaction",
      sampleTransaction({
        id: "refund-1",
        type: "refund",
        amount: 1_500,
        created_at: at(60),
        updated_at: at(60),
      }),
      seconds + 5,
    ),
  );
}

const paid = { order: "partially_refunded", sales: ["succeeded", "succeeded"] } as const;

/** What each report says of chargebacks in March. */
async function toldInMarch(asOf: string | null = null) {
  const rows = async (name: string) => (await ask(database.db, name, { ...march, asOf })).rows;
  const [monthEnd] = await rows("month-end");
  const [inventory] = await rows("chargeback-inventory");
  const [visa] = (await rows("network-monitor")).filter(({ brand }) => brand === "visa");
  return {
    list: (await rows("chargebacks")).map(({ chargeback, state, amount }) => [chargeback, state, amount]),
    monthEnd: [monthEnd?.["sales"], monthEnd?.["refunds"], monthEnd?.["chargebacks"]],
    reversals: monthEnd?.["reversals"],
    inventory: [inventory?.["received_count"], inventory?.["received"], inventory?.["closing"]],
    visa: [visa?.["sales"], visa?.["disputes"]],
    journal: (await rows("journal"))
      .filter(({ account }) => account === defaultAccounts.chargebacks)
      .map(({ description, debit }) => [description, debit]),
  };
}

const bothLost = {
  monthEnd: ["8000", "1500", "8000"],
  reversals: "0",
  inventory: ["2", "8000", "8000"],
  visa: ["2", "2"],
  journal: [["2 chargebacks", "8000"]],
};

describe("two paid sales of one order, with a refund", () => {
  beforeEach(() => read(100, paid));

  test.each([
    ["order and sales", "chargeback", "chargeback"],
    ["the sales alone", "partially_refunded", "chargeback"],
    ["the order alone", "chargeback", "succeeded"],
  ] as const)("are two chargebacks where %s show the dispute", async (_, order, sale) => {
    await read(day, { order, sales: [sale, sale] });
    expect(await toldInMarch()).toEqual({
      ...bothLost,
      list: [
        ["order-1", "opened", "4000"],
        ["sale-2", "opened", "4000"],
      ],
    });
  });

  test("are one chargeback where one of them shows it", async () => {
    await read(day, { order: "chargeback", sales: ["succeeded", "chargeback"] });
    expect(await toldInMarch()).toMatchObject({
      list: [["order-1", "opened", "4000"]],
      monthEnd: ["8000", "1500", "4000"],
      inventory: ["1", "4000", "4000"],
      visa: ["2", "1"],
    });
  });

  test("come back together when the order's dispute is dismissed", async () => {
    await read(day, { order: "chargeback", sales: ["chargeback", "chargeback"] });
    await read(2 * day, { order: "chargeback_dismissed", sales: ["succeeded", "succeeded"] });
    expect(await toldInMarch()).toMatchObject({
      monthEnd: ["8000", "1500", "8000"],
      reversals: "8000",
    });
  });

  test("are disputed each on its own day, and the first keeps its key", async () => {
    await read(day, { order: "chargeback", sales: ["succeeded", "chargeback"] });
    await read(3 * day, { order: "chargeback", sales: ["chargeback", "chargeback"] });
    const { rows } = await ask(database.db, "chargebacks", march);
    expect(rows.map(({ chargeback, noticed_on: on }) => [chargeback, on])).toEqual([
      ["order-1", "2025-03-02"],
      ["sale-1", "2025-03-04"],
    ]);
  });

  test("are one case for who answers it, with the whole amount", async () => {
    await read(day, { order: "chargeback", sales: ["chargeback", "chargeback"] });
    expect(await findChargebacks(database.db, ["sale-2"])).toMatchObject([
      { key: "order-1", amountMinor: 8_000n, currency: "usd", state: "opened" },
    ]);
  });

  test("are what they were, as of a time before they changed", async () => {
    await read(day, { order: "chargeback", sales: ["chargeback", "chargeback"] });
    const now = await toldInMarch();
    await letTimePass(database.db);
    const asOf = (await latestAsOf(database.db)).toISOString();
    await read(4 * day, { order: "chargeback_dismissed", sales: ["succeeded", "voided"] });
    expect(await toldInMarch(asOf)).toEqual(now);
  });
});

describe("a sale that is disputed again", () => {
  const states = async (...given: readonly [days: number, order: string, first: string][]) => {
    await read(100, paid);
    for (const [days, order, first] of given) {
      await read(days * day, { order, sales: [first, "succeeded"] });
    }
  };
  const movements = async (db = database.db, asOf: Date | null = null) =>
    (
      await db.raw<{ rows: { movement: string; on: string; amount: string }[] }>(
        `select movement, to_char(at at time zone 'UTC', 'MM-DD') as on, amount from reports.movements(?)
         where kind in ('chargeback', 'reversal') order by at, movement`,
        [asOf],
      )
    ).rows.map(({ movement, on, amount }) => `${on} ${movement} ${amount}`);
  const wonAndOpenedAgain = [
    "03-02 chargeback:order-1 -4000",
    "03-05 reversal:order-1 4000",
    "03-09 chargeback:order-1#2 -4000",
  ];

  test("after it was won moves money three times, each on its own day", async () => {
    await states(
      [1, "chargeback", "chargeback"],
      [4, "chargeback_dismissed", "succeeded"],
      [8, "chargeback", "chargeback"],
    );
    expect(await movements()).toEqual(wonAndOpenedAgain);
    expect((await toldInMarch()).list).toEqual([
      ["order-1", "dismissed", "4000"],
      ["order-1#2", "opened", "4000"],
    ]);
  });

  test("after it was lost is not lost twice", async () => {
    await states(
      [1, "chargeback", "chargeback"],
      [4, "chargeback_accepted", "chargeback"],
      [8, "chargeback", "chargeback"],
      [9, "chargeback_accepted", "chargeback"],
    );
    expect(await movements()).toEqual([
      "03-02 chargeback:order-1 -4000",
      "03-09 chargeback:order-1#2 -4000",
      "03-09 reversal:order-1 4000",
    ]);
  });

  test("by a transaction without an order", async () => {
    const sale = (days: number, status: string) =>
      seen("transaction", sampleTransaction({ order_id: null, status, updated_at: at(days * day) }), days * day + 5);
    await apply(database.db, sale(1, "chargeback"));
    await apply(database.db, sale(4, "succeeded"));
    await apply(database.db, sale(8, "chargeback"));
    expect(await movements()).toEqual([
      "03-02 chargeback:sale-1 -1000",
      "03-05 reversal:sale-1 1000",
      "03-09 chargeback:sale-1#2 -1000",
    ]);
  });

  test("counts the other sale where that is the one", async () => {
    await states([1, "chargeback", "chargeback"], [4, "chargeback_dismissed", "succeeded"]);
    await read(8 * day, { order: "chargeback", sales: ["succeeded", "chargeback"] });
    const { rows } = await database.db.raw<{ rows: unknown[] }>(
      "select sale_key, transaction_id, state from mirror.disputed_sales order by opening",
    );
    expect(rows).toEqual([
      { sale_key: "order-1", transaction_id: "sale-1", state: "dismissed" },
      { sale_key: "order-1#2", transaction_id: "sale-2", state: "opened" },
    ]);
  });

  test("was what it was, as of a time before it was won again", async () => {
    await states(
      [1, "chargeback", "chargeback"],
      [4, "chargeback_dismissed", "succeeded"],
      [8, "chargeback", "chargeback"],
    );
    await letTimePass(database.db);
    const asOf = await latestAsOf(database.db);
    await read(10 * day, { order: "chargeback_dismissed", sales: ["succeeded", "succeeded"] });
    expect(await movements(database.db, asOf)).toEqual(wonAndOpenedAgain);
    expect(await movements()).toEqual([...wonAndOpenedAgain, "03-11 reversal:order-1#2 4000"]);
  });
});

test("a second sale that is disputed after its month was closed is booked in the next", async () => {
  const { db } = database;
  await read(100, paid);
  await read(day, { order: "chargeback", sales: ["chargeback", "succeeded"] });
  await letTimePass(db);
  await coverAll(db, "2025-06-01T00:00:00Z");
  const request = { timeZone: "UTC", accounts: defaultAccounts, reason: null, by: "anna" };
  await closeMonth(db, { ...request, month: "2025-03" });
  await letTimePass(db);
  await read(2 * day, { order: "chargeback", sales: ["chargeback", "chargeback"] });
  const april = { from: "2025-04-01", to: "2025-04-30" };
  const late = (await ask(db, "changes-after-close", april)).rows;
  expect(late.map(({ movement, amount }) => [movement, amount])).toEqual([["chargeback:sale-2", "-4000"]]);
});
