import { beforeEach, expect, test } from "vitest";
import { emptyMirror } from "../mirror/copies.ts";
import { apply, at, sampleOrder, sampleSubscription, sampleTransaction, seen, shown } from "../mirror/samples.ts";
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
  return seen("transaction", sampleTransaction({ id, order_id, ...times, ...fields }), seenOnDay(100));
};
const subscription = (id: string, days: number, fields: Fields) =>
  seen("subscription", sampleSubscription({ id, updated_at: dayAt(days), ...fields }), seenOnDay(days));

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

test("a renewal that another order of its cycle pays is one that was recovered, and a voided one is lost", async () => {
  const charge = (id: string, cycle: number) => ({
    subscription_id: `of ${id}`,
    subscription_cycle: cycle,
  });
  const failed = { status: "failed", failure_code: "do_not_honor" };
  await apply(
    database.db,
    order("first try", 2, { ...failed, ...charge("retried", 2) }),
    attempt("t1", "first try", 2, failed),
    order("second try", 4, { ...failed, ...charge("retried", 2) }),
    attempt("t2", "second try", 4, failed),
    order("third try", 7, charge("retried", 2)),
    attempt("t3", "third try", 7, {}),
    order("next cycle", 32, charge("retried", 3)),
    attempt("t4", "next cycle", 32, {}),
    subscription("of retried", 32, {}),
    order("voided", 3, { status: "voided", updated_at: dayAt(5), ...charge("voided", 2) }),
    attempt("t5", "voided", 3, failed),
    subscription("of voided", 5, {}),
  );
  expect((await ask(database.db, "dunning-funnel", spring)).rows).toMatchObject([
    {
      week: "2025-03-03",
      entered: "2",
      entered_amount: "2000",
      recovered_at_3: "1",
      recovered: "1",
      recovered_amount: "1000",
      lost: "1",
      lost_amount: "1000",
      in_progress: "0",
      median_days: "5.0",
    },
  ]);
  expect((await ask(database.db, "declines", spring)).rows).toMatchObject([
    { declines: "3", recovered_percent: "66.67" },
  ]);
});

test("declines gives shares of each currency, and what was paid later", async () => {
  const yen = { currency: "jpy" };
  await apply(
    database.db,
    ...renewal("recovered", [2, 3], "succeeded"),
    ...renewal("not yet", [2], "pending"),
    ...renewal("voided", [2], "voided"),
    ...renewal("of a new status", [2], "on_hold"),
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
    ["usd", "4", "4000", "100.00", "25.00"],
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
      return [order(`sale ${n}`, day, { ...more, payment_method: card }), attempt(`s${n}`, `sale ${n}`, day, more)];
    }),
  );
  const { rows } = await ask(db, "network-monitor", spring);
  const told = rows.map((row) => [
    row["month"]?.slice(5, 7),
    row["programme"],
    row["sales"],
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

test("network-monitor holds a month against the programme of that time, in the acquirer's region", async () => {
  const card = { id: "card", card_last_four: "0006", card_brand: "Visa" };
  const sales = (from: number, many: number, disputed: number) =>
    Array.from({ length: many }, (_, n) => {
      const status = n < disputed ? "chargeback" : "succeeded";
      const fields = { status, updated_at: dayAt(from + 1), amount: 100_000, total: 100_000 };
      return [
        order(`v ${from} ${n}`, from, { ...fields, payment_method: card }),
        attempt(`t ${from} ${n}`, `v ${from} ${n}`, from, fields),
      ];
    }).flat();
  // March 2025, April 2025, June 2025, May 2026: 120 disputes of 1,000.00 each.
  await apply(database.db, ...[0, 40, 100, 430].flatMap((from) => sales(from, 200, from === 430 ? 70 : 120)));
  const told = async (from: string, region: "global" | "lac" | "mena") => {
    const { rows } = await ask(database.db, "network-monitor", {
      from: `${from}-01`,
      to: `${from}-28`,
      region,
    });
    return rows.map((row) => [row["programme"], row["threshold_percent"], row["threshold_disputes"], row["outcome"]]);
  };
  expect(await told("2025-03", "mena")).toEqual([
    ["VDMP", "0.9", "100", "over"],
    ["VDMP excessive", "1.8", "1000", "below"],
  ]);
  expect(await told("2025-04", "global")).toEqual([[null, null, null, "no programme"]]);
  expect(await told("2025-06", "global")).toEqual([["VAMP", "2.2", "1500", "below"]]);
  expect(await told("2025-06", "lac")).toEqual([["VAMP", "1.5", "1500", "below"]]);
  expect(await told("2025-06", "mena")).toEqual([["VAMP", "2.2", "100", "over"]]);
  expect(await told("2026-05", "global")).toEqual([["VAMP", "1.5", "1500", "below"]]);
  expect(await told("2026-05", "mena")).toEqual([["VAMP", "2.2", "100", "below"]]);
});

test("network-monitor: in MENA the count alone is not enough, the amount has to be reached as well", async () => {
  const card = { id: "card", card_last_four: "0006", card_brand: "Visa" };
  const disputes = Array.from({ length: 100 }, (_, n) => {
    const fields = { status: "chargeback", updated_at: dayAt(101), amount: 74_999, total: 74_999 };
    return [order(`v ${n}`, 100, { ...fields, payment_method: card }), attempt(`t ${n}`, `v ${n}`, 100, fields)];
  }).flat();
  await apply(database.db, ...disputes);
  const outcome = async () =>
    (
      await ask(database.db, "network-monitor", {
        from: "2025-06-01",
        to: "2025-06-30",
        region: "mena",
      })
    ).rows[0]?.["outcome"];
  expect(await outcome()).toBe("near");
  const euros = { status: "chargeback", updated_at: dayAt(101), currency: "eur" };
  await apply(
    database.db,
    order("in euros", 100, { ...euros, payment_method: card }),
    attempt("t in euros", "in euros", 100, euros),
  );
  // What it is in dollars is not known.
  expect(await outcome()).toBe("over");
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
    // Canceled after the last decline; nobody looked while it was past due.
    subscription("did not pay", 45, { status: "canceled", canceled_at: dayAt(45) }),
    order("paid", 5, { subscription_id: "did not pay", subscription_cycle: 2 }),
    order("unpaid", 35, {
      status: "failed",
      subscription_id: "did not pay",
      subscription_cycle: 3,
    }),
    // Past due when it was last seen, and then paid all the same before it was canceled.
    subscription("paid late", 0, {}),
    subscription("paid late", 35, { status: "past_due" }),
    subscription("paid late", 45, { status: "canceled", canceled_at: dayAt(45) }),
    order("paid in the end", 35, { subscription_id: "paid late", subscription_cycle: 2 }),
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
      opening: "5700",
      // 9.00 a week: 900 * 365.25 / 12 / 7 = 3913.39 a month.
      new_mrr: "3913",
      expansion: "100",
      contraction: "50",
      churn_voluntary: "1800",
      churn_involuntary: "900",
      reactivation: "700",
      closing: "7663",
      at_risk_opening: "0",
      at_risk_closing: "0",
      discounts: "0",
      subscriptions: "5",
    },
  ]);
});

test("mrr counts a plan's new price from the read that first shows it, though no subscription changed", async () => {
  const priced = (amount: number, fields: Fields = {}) =>
    sampleSubscription({ plan: { id: "p", name: "Plan", amount, currency: "usd" }, ...fields });
  await apply(
    database.db,
    // Told by an event on 1 March, and read in the middle of April and of May.
    shown("subscription", priced(1_000)),
    seen("subscription", priced(1_500), seenOnDay(45)),
    seen("subscription", priced(1_200), seenOnDay(75)),
    // What the subscription itself shows counts from its own time, whenever it is read.
    shown("subscription", priced(900, { id: "late" })),
    seen("subscription", priced(900, { id: "late", status: "past_due" }), seenOnDay(45)),
  );
  const mrr = async (from: string, to: string) => (await ask(database.db, "mrr", { from, to })).rows[0];
  expect(await mrr("2025-03-01", "2025-03-31")).toMatchObject({
    opening: "0",
    new_mrr: "1900",
    closing: "1900",
    at_risk_closing: "900",
  });
  expect(await mrr("2025-04-01", "2025-04-30")).toMatchObject({
    opening: "1900",
    expansion: "500",
    contraction: "0",
    closing: "2400",
  });
  expect(await mrr("2025-05-01", "2025-05-31")).toMatchObject({
    opening: "2400",
    expansion: "0",
    contraction: "300",
    closing: "2100",
  });
});

test("mrr is net of the discounts of the cycle under way, and tells apart what is past due", async () => {
  const coupon = (fields: Fields) => ({ applied_coupon: { id: "c", code: "C", ...fields } });
  const cycle = (n: number) => ({ current_billing_cycle: n });
  const year = { billing_cycle: { interval: "month", interval_count: 12 } };
  const once = coupon({ amount: 300, duration: "once" });
  const twice = coupon({ percentage: 12.5, duration: "repeating", duration_in_cycles: 2 });
  await apply(
    database.db,
    subscription("once", 0, { ...once, ...cycle(1) }),
    subscription("once", 35, { ...once, ...cycle(2) }),
    subscription("twice", 0, { ...twice, ...cycle(1) }),
    subscription("twice", 35, { ...twice, ...cycle(2) }),
    subscription("twice", 65, { ...twice, ...cycle(3) }),
    subscription("for ever, capped", 0, {
      ...coupon({ percentage: 50, max_discount_amount: 100, duration: "forever" }),
      ...cycle(9),
    }),
    subscription("more than it costs", 0, coupon({ amount: 5_000, duration: "once" })),
    subscription("more than it costs", 35, {
      ...coupon({ amount: 5_000, duration: "once" }),
      ...cycle(2),
    }),
    subscription("a year", 0, { ...year, ...coupon({ amount: 120, duration: "forever" }) }),
    subscription("unreadable", 0, coupon({ duration: "sometimes", percentage: "half" })),
    subscription("late", 0, {}),
    subscription("late", 50, { status: "past_due" }),
  );
  const april = (await ask(database.db, "mrr", { from: "2025-04-01", to: "2025-04-30" })).rows;
  expect(april).toMatchObject([
    {
      // 600 + (900 - 112) + 800 + 0 + (900 - 120) / 12 + 900 + 900
      opening: "4053",
      new_mrr: "0",
      // The discounts of a first cycle are over.
      expansion: "1200",
      contraction: "0",
      churn_voluntary: "0",
      churn_involuntary: "0",
      reactivation: "0",
      closing: "5253",
      at_risk_opening: "0",
      at_risk_closing: "900",
      discounts: "222",
      subscriptions: "7",
    },
  ]);
  const may = (await ask(database.db, "mrr", { from: "2025-05-01", to: "2025-05-31" })).rows;
  expect(may).toMatchObject([
    {
      opening: "5253",
      expansion: "112",
      closing: "5365",
      at_risk_opening: "900",
      discounts: "110",
    },
  ]);
});
