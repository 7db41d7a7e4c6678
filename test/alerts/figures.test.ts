import type { Knex } from "knex";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { customerFacts } from "../../src/parts/alerts/compose-message.ts";
import { findDeclinedOrders } from "../../src/core/mirror/dunning/declined-orders.ts";
import { usualDeclines } from "../../src/parts/alerts/storms/storms.ts";
import { sampleCustomer, sampleEntry, sampleOrder, sampleSubscription } from "../mirror/samples.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { emptyAll } from "../worker/worker-stand.ts";
import { storeAlert } from "./outbox/outbox-stand.ts";
import { deliver, lifeOf, messagesOf } from "./timeline-stand.ts";
import { standingClock, sweep, unresolved } from "./sweep-stand.ts";
import { settingsOf, testAlertContext } from "./test-alert-context.ts";

const database = useTestDatabase();
let db: Knex;
beforeAll(() => {
  ({ db } = database);
});
beforeEach(() => emptyAll(db));

const event = (object: object) => ({
  id: crypto.randomUUID(),
  type: "order.updated",
  created_at: "2025-03-01T12:00:00.000Z",
  data: { object },
});

/** Declined attempts that were made so long ago, and learned now. */
async function declinesOf(count: number, ago: { days?: number; minutes?: number }): Promise<void> {
  const alertId = await storeAlert(db, { key: `decline:${crypto.randomUUID()}` });
  await db.raw(
    `insert into alerts.history (alert_id, change, stage, at, found_by, recorded_at)
     select ?, 'updated', 'attempt:' || n, now() - make_interval(days => ?, mins => ?) - n * interval '1 second', 'event', now()
     from generate_series(1, ?) n`,
    [alertId, ago.days ?? 0, ago.minutes ?? 0, count],
  );
}

const relearn = (): Promise<number> =>
  db("alerts.marks")
    .where("name", "usual-declines")
    .update({ updated_at: db.raw("now() - interval '61 minutes'") });

test("what a window of this hour usually brings is learned once an hour", async () => {
  const settings = settingsOf({
    rules: { decline_storm: { baselineDays: 8, withinMinutes: 10, factor: 3, atLeast: 1 } },
  });
  const alertContext = testAlertContext({ settings });
  const usual = () => usualDeclines(db, alertContext, new Date());
  await declinesOf(30, { minutes: 30 });
  await sweep(db, alertContext);
  expect(await usual(), "not a day is known").toBeNull();

  // Each day has three hours of 18 windows that count: the hour before, this one, the one after.
  for (let days = 1; days <= 6; days++) await declinesOf(36, { days });
  for (const hours of [-2, 2, 6]) await declinesOf(500, { days: 2, minutes: hours * 60 });
  await declinesOf(1, { days: 8, minutes: -5 });
  await declinesOf(700, { days: 9 });
  await sweep(db, alertContext);
  expect(await usual(), "within the hour").toBeNull();
  await relearn();
  await sweep(db, alertContext);
  expect(await usual(), "by the times of the charges").toBeCloseTo((6 * 36 + 1) / 8 / 18, 5);

  await declinesOf(40, { days: 7, minutes: 30 });
  await relearn();
  await sweep(db, alertContext);
  expect(await usual(), "the fullest window of the same weekday").toBe(40);
  const dayBefore = new Date(Date.now() - 86_400_000);
  expect(await usualDeclines(db, alertContext, dayBefore), "another day is counted again").toBeLessThan(10);
});

test("chargebacks near a network's threshold, and over it, are told once an hour at most", async () => {
  const clock = standingClock("2025-03-20T12:00:00.000Z");
  const alertContext = testAlertContext({ clock, serviceClock: clock });
  await db("reports.network_thresholds").insert({
    brand: "testcard",
    programme: "Test Monitoring",
    valid_from: "2025-01-01",
    min_disputes: 5,
    min_percent: 1,
    basis: "same_month",
  });
  let from = 0;
  const look = async (disputes: number): Promise<string[]> => {
    const events = Array.from({ length: disputes }, (_, n) => {
      const id = `order-${from + n}`;
      const card = { id: "card-1", card_last_four: "4242", card_brand: "TestCard" };
      const entry = sampleEntry({ id: `sale-${from + n}` });
      const order = sampleOrder({ id, payment_method: card, transactions: [entry] });
      const lost = { ...order, status: "chargeback", updated_at: "2025-03-02T12:00:00.000Z" };
      return [event(order), event(lost)];
    });
    from += disputes;
    await deliver(db, alertContext, [events.flat()]);
    await sweep(db, alertContext);
    return (await unresolved(db)).filter((each) => each.startsWith("chargeback-ratio"));
  };
  const nextHour = () =>
    db("alerts.marks")
      .where("name", "watch:chargeback_ratio")
      .update({ updated_at: db.raw("now() - interval '61 minutes'") });
  const key = "chargeback-ratio:testcard:Test Monitoring";
  expect(await look(3)).toEqual([]);
  expect(await look(1), "within the hour").toEqual([]);
  await nextHour();
  expect(await look(0), "4 of 5").toEqual([`${key} error open`]);
  await nextHour();
  expect(await look(1), "5 of 5").toEqual([`${key} error open`, `${key}:over critical open`]);
  expect(await messagesOf(db, key)).toEqual(["trigger opened"]);
  expect(await messagesOf(db, `${key}:over`)).toEqual(["trigger opened"]);
  clock.set("2025-04-01T12:00:00.000Z");
  await nextHour();
  expect(await look(0), "another month").toEqual([]);
  expect(await messagesOf(db, key)).toEqual(["trigger opened", "resolve resolved"]);
});

test("chargebacks are over a threshold only where its amount is reached as well, as in the report", async () => {
  const clock = standingClock("2025-05-20T12:00:00.000Z");
  const alertContext = testAlertContext({ clock, serviceClock: clock });
  await db("reports.network_thresholds").insert({
    brand: "amountcard",
    programme: "With an amount",
    valid_from: "2025-01-01",
    min_disputes: 1,
    min_percent: 1,
    basis: "same_month",
    min_amount: 1_000_000,
    min_amount_currency: "usd",
  });
  const card = { id: "card-1", card_last_four: "4242", card_brand: "AmountCard" };
  const order = sampleOrder({ payment_method: card, transactions: [sampleEntry()] });
  const lost = { ...order, status: "chargeback", updated_at: "2025-05-02T12:00:00.000Z" };
  await deliver(db, alertContext, [[event(order), event(lost)]]);
  await sweep(db, alertContext);
  const told = (await unresolved(db)).filter((each) => each.startsWith("chargeback-ratio"));
  expect(told).toEqual(["chargeback-ratio:amountcard:With an amount error open"]);
});

test("an order that was declined and is voided now was not paid after all, as in the report", async () => {
  const order = sampleOrder({ status: "failed", transactions: [] });
  const later = { ...order, status: "voided", updated_at: "2025-03-02T12:00:00.000Z" };
  await deliver(db, testAlertContext({}), [[event(order), event(later)]]);
  const [found] = await findDeclinedOrders(db, ["order-1"]);
  expect(found).toMatchObject({ status: "voided", payments: [] });
});

test("a decline ends as lost when its order is voided, also once it was paid in between", async () => {
  const alertContext = testAlertContext({});
  const charge = { subscription_id: "subscription-1", subscription_cycle: 2 };
  const state = (days: number, status: string, fields: object = {}) =>
    event(
      sampleOrder({
        ...charge,
        status,
        updated_at: `2025-03-0${days}T12:00:00.000Z`,
        transactions: [sampleEntry({ status: "failed", failure_code: "expired_card" })],
        ...fields,
      }),
    );
  const key = "dunning:subscription-1:2";
  await deliver(db, alertContext, [[state(1, "failed")], [state(2, "voided")]]);
  expect(await unresolved(db)).toEqual([]);
  expect(await lifeOf(db, key)).toEqual(["opened attempt:1", "resolved voided"]);
  const paid = sampleEntry({ id: "sale-2", created_at: "2025-03-03T12:00:00.000Z" });
  const voided = { ...paid, status: "voided" };
  await deliver(db, alertContext, [
    [state(3, "succeeded", { transactions: [paid] })],
    [state(4, "voided", { transactions: [voided], updated_at: "2025-03-04T12:00:00.000Z" })],
  ]);
  const [found] = await findDeclinedOrders(db, ["order-1"]);
  expect(found).toMatchObject({ payments: [], voidedAt: new Date("2025-03-02T12:00:00.000Z") });
  expect(await unresolved(db)).toEqual([]);
});

test("what a customer owes and has paid: by currency, refunds and lost chargebacks taken off", async () => {
  const subscription = (id: string, status: string) => sampleSubscription({ id, status });
  const order = (id: string, fields: object) => sampleOrder({ id, transactions: [], ...fields });
  const entry = (id: string, fields: object = {}) => sampleEntry({ id, ...fields });
  const failed = { status: "failed", total: 900, failure_code: "expired_card" };
  const events = [
    sampleCustomer(),
    subscription("past-due", "past_due"),
    subscription("canceled", "canceled"),
    order("order-1", { ...failed, subscription_id: "past-due", subscription_cycle: 2 }),
    order("order-2", { ...failed, subscription_id: "canceled", subscription_cycle: 2 }),
    order("order-3", failed),
    order("order-1b", { ...failed, subscription_id: "past-due", subscription_cycle: 2 }),
    order("order-4", {
      transactions: [
        entry("sale-4"),
        entry("sale-4b", { status: "failed" }),
        entry("refund-4", { type: "refund", amount: 400 }),
      ],
    }),
    order("order-5", { currency: "eur", transactions: [entry("sale-5", { currency: "eur" })] }),
    order("order-6", { transactions: [entry("sale-6", { status: "chargeback" })] }),
    order("order-7", { customer_id: "customer-2", transactions: [entry("sale-7")] }),
  ];
  const types = ["customer", "subscription", "subscription"];
  await deliver(db, testAlertContext(), [
    events.map((object, n) => ({ ...event(object), type: `${types[n] ?? "order"}.updated` })),
  ]);
  const words = await customerFacts(db, ["customer-1", "customer-9"]);
  expect(words.get("customer-1")).toMatchObject({ person: "j…@e….com" });
  expect(words.get("customer-9")).toMatchObject({ person: null });
  expect(words.get("customer-1")?.facts).toEqual([
    { label: "Customer", value: "j…@e….com (customer-1)" },
    { label: "Past due in total", value: "9.00 USD" },
    { label: "Paid in total", value: "10.00 EUR, 6.00 USD" },
  ]);
  expect(words.get("customer-9")?.facts).toEqual([
    { label: "Customer", value: "customer-9" },
    { label: "Past due in total", value: "nothing" },
    { label: "Paid in total", value: "nothing" },
  ]);
});
