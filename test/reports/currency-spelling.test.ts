import type { Knex } from "knex";
import { readFile } from "node:fs/promises";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { canonicalCurrency } from "../../src/core/contract/wire-types.ts";
import { migrationsFolder } from "../../src/platform/postgres/migrations.ts";
import { closeMonth } from "../../src/parts/reports/close/close-month.ts";
import { defaultAccounts } from "../../src/parts/reports/base/account-map.ts";
import { apply, at, rowOf, sampleOrder, sampleSubscription, seen, shown } from "../mirror/samples.ts";
import { sampleTransaction } from "../mirror/samples.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { ask } from "./ask.ts";
import { letTimePass } from "./sandbox-history.ts";
import { emptyTables } from "../support/empty-tables.ts";

const database = useTestDatabase();
let db: Knex;
beforeAll(() => {
  ({ db } = database);
});
beforeEach(() =>
  emptyTables(db, [
    "mirror.orders",
    "mirror.transactions",
    "mirror.subscriptions",
    "mirror.versions",
    "reports.closes",
  ]),
);

const month = { from: "2025-03-01", to: "2025-03-31" };
const journal = async () => (await ask(db, "journal", month)).rows;
const monthEnd = async () => (await ask(db, "month-end", month)).rows;
const sale = (id: string, currency: string) => [
  seen("order", sampleOrder({ id: `of-${id}`, currency }), 60),
  seen("transaction", sampleTransaction({ id, order_id: `of-${id}`, currency }), 60),
];

test("USD and usd are one currency: a line in each report, and one entry of the journal", async () => {
  await apply(db, ...sale("lower", "usd"), ...sale("upper", "USD"), ...sale("mixed", "Usd"));
  expect(await monthEnd()).toMatchObject([{ currency: "usd", sales: "3000" }]);
  const lines = await journal();
  expect(new Set(lines.map(({ number }) => number))).toEqual(new Set(["PRELIM-20250301-USD"]));
  expect(lines.map(({ line }) => line)).toEqual(["1", "2"]);
});

test("what the service sent stays in the row's data as it was sent", async () => {
  await apply(db, ...sale("upper", "USD"));
  expect(await rowOf(db, "transactions", "upper")).toMatchObject({
    currency: "usd",
    data: { currency: "USD" },
  });
});

test("a plan's currency has one spelling too", async () => {
  const plan = { id: "plan-1", name: "Monthly", amount: 900 };
  const subscribed = (currency: string, updated_at: string) =>
    shown("subscription", sampleSubscription({ plan: { ...plan, currency }, updated_at }));
  await apply(db, subscribed("USD", at(0)), subscribed("usd", at(2 * 86_400)));
  const { rows, about } = await ask(db, "mrr", { from: "2025-03-02", to: "2025-03-31" });
  expect(rows).toMatchObject([{ currency: "usd", opening: "900", closing: "900" }]);
  expect(JSON.stringify(about)).not.toContain("one_currency");
});

describe("rows that a release before wrote", () => {
  const asBefore = () => db.raw("update mirror.transactions set currency = 'USD' where id = 'upper'");

  test("make no second entry of the journal under one number", async () => {
    await apply(db, ...sale("lower", "usd"), ...sale("upper", "USD"));
    await asBefore();
    const lines = await journal();
    const places = lines.map(({ number, line }) => `${number}/${line}`);
    expect(new Set(places).size).toBe(places.length);
    expect(await monthEnd()).toMatchObject([{ currency: "usd", sales: "2000" }]);
  });

  test("are no correction of a month that was closed with them", async () => {
    await apply(db, ...sale("upper", "USD"));
    await asBefore();
    await letTimePass(db);
    const request = { month: "2025-03", timeZone: "UTC", accounts: defaultAccounts };
    await closeMonth(db, { ...request, reason: "a test", by: "anna" });
    await db.raw(
      `set session_replication_role = replica;
       update reports.closed_movements set currency = 'USD';
       set session_replication_role = origin`,
    );
    await db.raw("update mirror.transactions set currency = 'usd'");
    const { rows } = await ask(db, "month-end", { from: "2025-03-01", to: "2025-04-30" });
    expect(rows.map(({ currency }) => currency)).toEqual(["usd", "usd"]);
    expect((await ask(db, "changes-after-close", { from: "2025-03-01", to: "2025-04-30" })).rows).toEqual([]);
  });

  test("are brought to one spelling by the migration, which can run again", async () => {
    await apply(db, ...sale("upper", "USD"));
    await db.raw("update mirror.orders set currency = 'USD'");
    await asBefore();
    const text = await readFile(new URL("0084_currency_spelling.sql", migrationsFolder), "utf8");
    await db.raw(text);
    await db.raw(text);
    expect(await db("mirror.transactions").pluck("currency")).toEqual(["usd"]);
    expect(await db("mirror.orders").pluck("currency")).toEqual(["usd"]);
  });
});

test("the reports read a currency of the history as the mirror does", async () => {
  const texts = ["usd", "USD", "Usd", "", "É", "İ", "ß", "K", "X".repeat(60), "dollars of 🜍"];
  const { rows } = await db.raw<{ rows: { text: string; read: string }[] }>(
    "select t.text, reports.currency_of(to_jsonb(t.text)) as read from unnest(?::text[]) t(text)",
    [texts],
  );
  expect(rows).toEqual(texts.map((text) => ({ text, read: canonicalCurrency(text).slice(0, 40) })));
});
