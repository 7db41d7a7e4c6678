import { beforeEach, expect, test } from "vitest";
import { emptyMirror } from "../mirror/copies.ts";
import {
  apply,
  at,
  sampleOrder,
  sampleSubscription,
  sampleTransaction,
  seen,
} from "../mirror/samples.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { ask } from "./ask.ts";

/* Figures added up by hand. Day 0 is 2025-03-01, a Saturday. */

const database = useTestDatabase();
beforeEach(() => emptyMirror(database.db));

type Fields = Record<string, unknown>;
const dayAt = (days: number): string => at(days * 86_400);
const spring = { from: "2025-03-01", to: "2025-05-31" };
const seenOnDay = (days: number) => days * 86_400 + 3_600;

const order = (id: string, days: number, fields: Fields) =>
  seen("order", sampleOrder({ id, created_at: dayAt(days), ...fields }), seenOnDay(100));
const attempt = (id: string, order_id: string, days: number, fields: Fields) => {
  const times = { created_at: dayAt(days), updated_at: dayAt(days) };
  return seen(
    "transaction",
    sampleTransaction({ id, order_id, ...times, ...fields }),
    seenOnDay(100),
  );
};
const subscription = (id: string, days: number, fields: Fields) =>
  seen(
    "subscription",
    sampleSubscription({ id, updated_at: dayAt(days), ...fields }),
    seenOnDay(days),
  );

/** A renewal with attempts on these days, all declined but for the last one where it is paid. */
function renewal(id: string, days: readonly number[], status: string, fields: Fields = {}) {
  const charge = { subscription_id: `of ${id}`, subscription_cycle: 2 };
  return [
    order(id, days[0] ?? 0, { status, ...charge, ...fields }),
    ...days.map((day, n) => {
      const isPaid = status === "succeeded" && n === days.length - 1;
      const currency = fields["currency"] ?? "usd";
      return attempt(`${id} ${n}`, id, day, { status: isPaid ? "succeeded" : "failed", currency });
    }),
  ];
}

test("dunning-funnel tells by which attempt a renewal was recovered, what is lost and what goes on", async () => {
  await apply(
    database.db,
    ...renewal("second", [2, 3], "succeeded"),
    ...renewal("third", [3, 5, 8], "succeeded"),
    ...renewal("fifth", [4, 5, 6, 7, 24], "succeeded"),
    ...renewal("canceled", [5, 6], "failed"),
    ...renewal("waiting", [8], "failed"),
    ...renewal("next week", [9, 10], "succeeded"),
    ...renewal("paid at once", [5], "succeeded"),
    ...["second", "third", "fifth", "waiting"].map((id) =>
      subscription(`of ${id}`, 30, { status: id === "waiting" ? "past_due" : "active" }),
    ),
    subscription("of canceled", 30, { status: "canceled", canceled_at: dayAt(30) }),
  );
  expect((await ask(database.db, "dunning-funnel", spring)).rows).toMatchObject([
    {
      week: "2025-03-03",
      entered: "5",
      recovered_at_2: "1",
      recovered_at_3: "1",
      recovered_at_4: "0",
      recovered_later: "1",
      recovered: "3",
      recovered_amount: "3000",
      lost: "1",
      lost_amount: "1000",
      in_progress: "1",
      recovery_percent: "60.00",
      // Of 1, 5 and 20.
      median_days: "5.0",
    },
    { week: "2025-03-10", entered: "1", recovered_at_2: "1" },
  ]);
});

test("declines gives shares of each currency, and what was paid later", async () => {
  const yen = { currency: "jpy" };
  await apply(
    database.db,
    ...renewal("recovered", [2, 3], "succeeded"),
    ...renewal("not yet", [2], "pending"),
    ...renewal("voided", [2], "voided"),
    ...renewal("in yen", [2, 3, 4], "failed", yen),
  );
  const { rows } = await ask(database.db, "declines", spring);
  const told = rows.map((row) => [
    row["currency"],
    row["declines"],
    row["amount"],
    row["share_percent"],
    row["recovered_percent"],
  ]);
  expect(told).toEqual([
    ["jpy", "3", "3000", "100.00", "0.00"],
    ["usd", "3", "3000", "100.00", "33.33"],
  ]);
});

test("network-monitor counts a programme as reached from its thresholds on, by its own month's sales", async () => {
  const { db } = database;
  await db("reports.network_thresholds").insert([
    {
      brand: "amex",
      programme: "now",
      valid_from: "2025-01-01",
      valid_until: "2025-05-01",
      min_disputes: 1,
      min_percent: 30,
      basis: "same_month",
    },
    {
      brand: "amex",
      programme: "then",
      valid_from: "2025-01-01",
      min_disputes: 2,
      min_percent: 30,
      basis: "previous_month",
    },
  ]);
  const card = { id: "card", card_last_four: "0005", card_brand: "Amex" };
  // In March four sales, in April seven; two of April's were charged back in April.
  const days = [0, 1, 2, 3, 31, 32, 33, 34, 35, 36, 37];
  await apply(
    db,
    ...days.flatMap((day, n) => {
      const status = n === 4 || n === 5 ? "chargeback" : "succeeded";
      const more = { status, updated_at: dayAt(day + 1) };
      return [
        order(`sale ${n}`, day, { ...more, payment_method: card }),
        attempt(`s${n}`, `sale ${n}`, day, more),
      ];
    }),
  );
  const { rows } = await ask(db, "network-monitor", spring);
  const told = rows.map((row) => [
    row["month"]?.slice(5, 7),
    row["programme"],
    row["settled"],
    row["disputes"],
    row["threshold_disputes"],
    row["headroom"],
    row["outcome"],
  ]);
  await db("reports.network_thresholds").where({ brand: "amex" }).delete();
  expect(told).toEqual([
    ["03", "now", "4", "0", "1", "2", "below"],
    ["03", "then", "0", "0", "2", "2", "below"],
    // 30 % of seven sales are 2.1: the third dispute is one too many.
    ["04", "now", "7", "2", "1", "1", "below"],
    ["04", "then", "4", "2", "2", "0", "over"],
    ["05", "then", "7", "0", "2", "3", "below"],
  ]);
});

test("mrr tells why a subscription went, and whether it is new or came back", async () => {
  const week = { billing_cycle: { interval: "day", interval_count: 7 } };
  const made = (days: number) => ({ created_at: dayAt(days), start_date: dayAt(days) });
  await apply(
    database.db,
    subscription("stays", 0, { plan: { id: "p", amount: 1200, currency: "usd" } }),
    subscription("left", 0, {}),
    subscription("left", 40, { status: "canceled", canceled_at: dayAt(40) }),
    subscription("did not pay", 0, {}),
    subscription("did not pay", 35, { status: "past_due" }),
    subscription("did not pay", 45, { status: "canceled", canceled_at: dayAt(45) }),
    subscription("came back", 0, { status: "paused" }),
    subscription("came back", 40, { plan: { id: "p", amount: 700, currency: "usd" } }),
    subscription("came", 40, { ...made(40), ...week }),
    subscription("grew", 0, {}),
    subscription("grew", 41, { plan: { id: "p", amount: 1000, currency: "usd" } }),
    subscription("shrank", 0, {}),
    subscription("shrank", 41, { plan: { id: "p", amount: 850, currency: "usd" } }),
  );
  const { rows } = await ask(database.db, "mrr", { from: "2025-04-01", to: "2025-04-30" });
  expect(rows).toEqual([
    {
      currency: "usd",
      opening: "4800",
      // 9.00 a week: 900 * 365.25 / 12 / 7 = 3913.39 a month.
      new_mrr: "3913",
      expansion: "100",
      contraction: "50",
      churn_voluntary: "900",
      churn_involuntary: "900",
      reactivation: "700",
      closing: "7663",
      subscriptions: "5",
    },
  ]);
});
