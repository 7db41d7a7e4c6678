import type { Knex } from "knex";
import { beforeEach, describe, expect, inject, test } from "vitest";
import { defaultAccounts } from "../../src/parts/reports/base/account-map.ts";
import { type ReportFacts, factLines } from "../../src/parts/reports/base/report-facts.ts";
import { readingTransaction } from "../../src/parts/reports/base/read-report.ts";
import type { Report } from "../../src/parts/reports/base/report.ts";
import { countUnknownCells, readUnknown } from "../../src/parts/reports/base/unknown-values.ts";
import { allReports } from "../../src/parts/reports/catalogue/all.ts";
import { closeMonth } from "../../src/parts/reports/close/close-month.ts";
import { emptyMirror } from "../mirror/copies.ts";
import { apply, at, sampleOrder, sampleSubscription, sampleTransaction, seen } from "../mirror/samples.ts";
import { createTestDatabase } from "../support/database.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { type Answer, ask } from "./ask.ts";
import { coverAll } from "./coverage.ts";
import { letTimePass } from "./sandbox-history.ts";

const database = useTestDatabase();
beforeEach(() => emptyMirror(database.db));

type Fields = Record<string, unknown>;
const day = 86_400;
const march = { from: "2025-03-01", to: "2025-03-31" };
const april = { from: "2025-04-01", to: "2025-04-30" };
const plan = { id: "plan", name: "Monthly", amount: 2_100, currency: "usd" };

const subscription = (days: number, fields: Fields) =>
  seen("subscription", sampleSubscription({ updated_at: at(days * day), ...fields }), days * day + 5);

const notKnown = ({ about }: { about: ReportFacts }): string | undefined => new Map(factLines(about)).get("Not known");

describe("an active subscription", () => {
  beforeEach(() => apply(database.db, subscription(1, { plan })));

  const kept = { opening: "2100", churn_voluntary: "0", contraction: "0", closing: "2100" };

  test.each([
    ["without a plan", { plan: null }],
    ["whose plan has no currency", { plan: { ...plan, currency: null } }],
    ["whose interval is not shown", { plan, billing_cycle: null }],
    [
      "that pays by an interval that nobody knows",
      { plan: { ...plan, amount: 25_200 }, billing_cycle: { interval: "year", interval_count: 1 } },
    ],
  ])("%s is counted with what was last known, and the report says so", async (_, fields) => {
    await apply(database.db, subscription(40, fields));
    const answer = await ask(database.db, "mrr", april);
    expect(answer.rows).toMatchObject([{ currency: "usd", subscriptions: "1", ...kept }]);
    expect(answer.about.unknown).toEqual([{ what: "subscription.plan_shown", n: 1 }]);
    expect(notKnown(answer)).toContain("1 subscription whose plan, interval or cycle");
  });

  test("whose discount ended is not discounted again where its cycle is not shown", async () => {
    const applied_coupon = { duration: "repeating", duration_in_cycles: 2, percentage: 50 };
    const fields = { plan, applied_coupon };
    await apply(database.db, subscription(20, { ...fields, current_billing_cycle: 3 }));
    await apply(database.db, subscription(40, { ...fields, current_billing_cycle: null }));
    const { rows } = await ask(database.db, "mrr", april);
    expect(rows).toMatchObject([kept]);
  });

  test("whose plan is in another currency is neither lost nor new", async () => {
    await apply(database.db, subscription(40, { plan: { ...plan, amount: 2_000, currency: "eur" } }));
    const answer = await ask(database.db, "mrr", april);
    const none = { new_mrr: "0", churn_voluntary: "0", churn_involuntary: "0", reactivation: "0" };
    expect(answer.rows).toMatchObject([
      {
        currency: "eur",
        opening: "0",
        expansion: "2000",
        closing: "2000",
        subscriptions: "1",
        ...none,
      },
      {
        currency: "usd",
        opening: "2100",
        contraction: "2100",
        closing: "0",
        subscriptions: "0",
        ...none,
      },
    ]);
    expect(answer.about.unknown).toEqual([{ what: "subscription.one_currency", n: 1 }]);
  });
});

test.each([
  ["showed a plan", { plan: null }, "xxx"],
  ["paid by an interval that is known", { plan, billing_cycle: { interval: "year", interval_count: 1 } }, "usd"],
  ["showed an interval", { plan, billing_cycle: null }, "usd"],
])("a subscription that never %s is in no sum, and the report says so", async (_, fields, currency) => {
  await apply(database.db, subscription(1, fields));
  const answer = await ask(database.db, "mrr", april);
  expect(answer.rows).toMatchObject([{ currency, opening: "0", closing: "0", subscriptions: "1" }]);
  expect(answer.about.unknown).toEqual([{ what: "subscription.plan", n: 1 }]);
});

test("a renewal whose subscription is not known is not taken for lost", async () => {
  await apply(
    database.db,
    seen("order", sampleOrder({ ...ofSubscription, status: "failed" }), 5),
    seen("transaction", sampleTransaction({ status: "failed" }), 5),
  );
  const answer = await ask(database.db, "dunning-funnel", march);
  expect(answer.rows).toMatchObject([{ lost: "0", in_progress: "1" }]);
  expect(answer.about.unknown).toEqual([{ what: "renewal.subscription", n: 1 }]);
});

test("what was given back so far is not known from a refund on whose amount is not", async () => {
  const { db } = database;
  const refund = (id: string, seconds: number) =>
    seen("transaction", sampleTransaction({ id, type: "refund", amount: 500, created_at: at(seconds) }), 200);
  await apply(db, seen("order", sampleOrder(), 100), refund("one", 1), refund("two", 2), refund("three", 3));
  await setNull(db, "mirror.transactions", "two", "amount");
  const { rows } = await ask(db, "refunds", march);
  expect(rows.map(({ cumulative, extent }) => [cumulative, extent])).toEqual([
    ["500", "partial"],
    [null, "unknown"],
    [null, "unknown"],
  ]);
});

test("an amount that is not known any more changes no closed month", async () => {
  const own = await createTestDatabase();
  try {
    const { db } = own;
    await apply(db, seen("order", sampleOrder(), 5), seen("transaction", sampleTransaction(), 5));
    await letTimePass(db);
    await coverAll(db, "2025-06-01T00:00:00Z");
    const request = { month: "2025-03", timeZone: "UTC", reason: null, by: "anna" };
    await closeMonth(db, { ...request, accounts: defaultAccounts });
    await letTimePass(db);
    await setNull(db, "mirror.transactions", "sale-1", "amount");
    const late = await ask(db, "changes-after-close", april);
    expect(late.rows).toEqual([]);
    expect(late.about.unknown).toEqual([{ what: "sale.amount", n: 1 }]);
    const { rows } = await ask(db, "month-end", april);
    expect(rows).toMatchObject([{ cumulative_gross_closing: "1000", corrections: "0" }]);
  } finally {
    await own.destroy();
  }
});

const ofSubscription = { subscription_id: "subscription-1", subscription_cycle: 2 };

/** One of each: a charged-back sale with a refund, an unsettled one, a declined renewal of a past due subscription. */
async function fill(db: Knex): Promise<void> {
  const payment_method = { id: "card", card_brand: "visa", card_last_four: "1111" };
  const order = (id: string, fields: Fields) =>
    seen("order", sampleOrder({ id, payment_method, updated_at: at(2 * day), ...fields }), 2 * day + 5);
  const transaction = (id: string, order_id: string, fields: Fields) =>
    seen("transaction", sampleTransaction({ id, order_id, updated_at: at(2 * day), ...fields }), 2 * day + 5);
  await apply(
    db,
    subscription(1, { plan, status: "past_due" }),
    order("disputed", { status: "chargeback" }),
    transaction("disputed-sale", "disputed", { status: "chargeback" }),
    transaction("refund", "disputed", { type: "refund", amount: 300, created_at: at(day) }),
    order("unsettled", {}),
    transaction("unsettled-sale", "unsettled", { status: "in_progress" }),
    order("renewal", { status: "failed", failure_code: "do_not_honor", ...ofSubscription }),
    transaction("attempt", "renewal", { status: "failed", failure_code: "do_not_honor" }),
  );
}

/** As no state of the service shows it, but as a row may be for all that the columns say. */
const setNull = (db: Knex, table: string, id: string, column: string): Promise<void> =>
  db.transaction(async (trx) => {
    await trx.raw("set local session_replication_role = replica");
    await trx.raw(`update ${table} set ${column} = null where id = ?`, [id]);
  });

/** An order's status is not among them: no state is stored without one. */
const nullable = [
  {
    table: "mirror.transactions",
    ids: ["disputed-sale", "refund", "unsettled-sale", "attempt"],
    columns: ["amount", "currency", "type", "status", "created_at"],
  },
  {
    table: "mirror.orders",
    ids: ["disputed", "unsettled", "renewal"],
    columns: ["total", "currency", "card_brand"],
  },
];

/** Every day one row for each column, another one for the next. */
const missing = nullable.flatMap(({ table, ids, columns }) =>
  columns.flatMap((column, n) =>
    ids.filter((_, nth) => inject("isTorture") || nth === n % ids.length).map((id) => [table, column, id] as const),
  ),
);

/** What each report says of March, straight from its functions: by column, currency and brand, and how much is noted. */
const figuresOf = (db: Knex) =>
  readingTransaction(db, async (trx) => {
    const period = { ...march, timeZone: "UTC", fromUtc: "2025-03-01", toUtc: "2025-04-01" };
    const found: { name: string; sums: Map<string, bigint>; noted: number }[] = [];
    for (const report of allReports) {
      const { rows } = await trx.raw<{ rows: Answer[] }>(`select * from reports.${report.source}(?, ?, ?)`, [
        period.fromUtc,
        period.toUtc,
        period.timeZone,
      ]);
      const cells = countUnknownCells(report);
      cells.add(rows.map((row) => report.columns.map(({ name }) => row[name] ?? null)));
      const unknown = [...(await readUnknown(trx, { report, period, asOf: null })), ...cells.counts()];
      const noted = unknown.reduce((all, { n }) => all + n, 0);
      found.push({ name: report.name, sums: sumsOf(report, rows), noted });
    }
    return found;
  });

function sumsOf({ columns }: Report, rows: readonly Answer[]): Map<string, bigint> {
  const sums = new Map<string, bigint>();
  for (const row of rows) {
    for (const { name, kind } of columns) {
      if (kind !== "money" && kind !== "count") continue;
      const key = [name, row["currency"] ?? "", row["brand"] ?? ""].join(" ");
      sums.set(key, (sums.get(key) ?? 0n) + BigInt(row[name] ?? 0));
    }
  }
  return sums;
}

describe("no report lowers a figure without a word", () => {
  let known: Awaited<ReturnType<typeof figuresOf>> | undefined;
  beforeEach(async () => {
    await fill(database.db);
    known ??= await figuresOf(database.db);
  });

  test.each(missing)("where %s.%s of the %s is not known", async (table, column, id) => {
    await setNull(database.db, table, id, column);
    const now = await figuresOf(database.db);
    const silent = now.flatMap(({ name, sums, noted }, n) => {
      const before = known?.[n];
      if (before === undefined || noted > before.noted) return [];
      return [...before.sums].flatMap(([key, sum]) => ((sums.get(key) ?? 0n) < sum ? [`${name}: ${key}`] : []));
    });
    expect(silent).toEqual([]);
  });
});
