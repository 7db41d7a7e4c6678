import { expect, test } from "vitest";
import { apply, at, sampleOrder, sampleTransaction, seen } from "../../mirror/samples.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { ask } from "../ask.ts";

const database = useTestDatabase();
const day = 86_400;
const dayAt = (days: number): string => at(days * day).slice(0, 10);
const spring = { from: dayAt(0), to: dayAt(60) };

/** A transaction made so many days later. */
const made = (id: string, days: number, fields: Record<string, unknown>) =>
  seen(
    "transaction",
    sampleTransaction({ id, created_at: at(days * day), updated_at: at(days * day), ...fields }),
    100 * day,
  );

test("was sold on the day of the attempt that was paid, as it is booked", async () => {
  const { db } = database;
  const order = { id: "late", status: "chargeback", updated_at: at(30 * day) };
  await apply(
    db,
    seen("order", sampleOrder(order), 100 * day),
    made("declined", 0, { order_id: "late", status: "failed" }),
    made("paid", 9, { order_id: "late", status: "chargeback", updated_at: at(30 * day) }),
    made("back", 12, { order_id: "late", type: "refund", amount: 100 }),
    made("not back", 13, { order_id: "late", type: "refund", amount: 30, status: "failed" }),
    made("back twice", 31, { order_id: "late", type: "refund", amount: 900 }),
  );
  expect((await ask(db, "refunds", spring)).rows).toMatchObject([
    { refund: "back", sold_on: dayAt(9), refunded_on: dayAt(12), days: "3", cumulative: "100" },
    { refund: "not back", cumulative: "100", extent: "none", status: "failed" },
    { refund: "back twice", days: "22", cumulative: "1000", extent: "full" },
  ]);
  expect((await ask(db, "chargebacks", spring)).rows).toMatchObject([
    { chargeback: "late", sold_on: dayAt(9), noticed_on: dayAt(30), refunded_before: "100" },
  ]);
});

test("has nothing to do with another refund that has no order either", async () => {
  const { db } = database;
  const orphan = { order_id: null, type: "refund" };
  await apply(
    db,
    made("in dollars", 40, { ...orphan, amount: 100 }),
    made("in yen", 41, { ...orphan, amount: 200, currency: "jpy" }),
  );
  const { rows } = await ask(db, "refunds", { from: dayAt(40), to: dayAt(41) });
  expect(rows).toMatchObject([
    { refund: "in dollars", cumulative: "100", extent: "unknown" },
    { refund: "in yen", cumulative: "200", extent: "unknown" },
  ]);
});
