import { beforeAll, expect, test } from "vitest";
import { useTestDatabase } from "../../support/use-database.ts";
import { ask } from "../ask.ts";
import { pastDue } from "../past-due.ts";

const database = useTestDatabase();
const timeZone = "Pacific/Auckland";
const day = 86_400_000;
/** So many days before the last day of the period, half an hour after it began in Auckland: the day before in UTC. */
const daysOld = (days: number): string => new Date(Date.parse("2026-06-29T12:30:00Z") - days * day).toISOString();

beforeAll(() =>
  pastDue(database.db, [
    ...[0, 7, 8, 14, 15, 30, 31, 60, 61, 400].map((days) => ({
      id: `age ${days}`,
      createdAt: daysOld(days),
      total: 1 + days,
    })),
    { id: "retried by another order", createdAt: daysOld(31), total: 5, cycle: 90 },
    { id: "the other order", createdAt: daysOld(3), total: 5, cycle: 90 },
    { id: "paid by another order", createdAt: daysOld(31), total: 1_000_000, cycle: 91 },
    { id: "that order", createdAt: daysOld(3), total: 1_000_000, cycle: 91, status: "succeeded" },
    { id: "yen", createdAt: daysOld(7), total: 9, currency: "jpy" },
    { id: "first charge", createdAt: daysOld(3), total: 1_000_000, cycle: null },
    { id: "paid", createdAt: daysOld(3), total: 1_000_000, status: "succeeded" },
    { id: "after the end", createdAt: daysOld(-1), total: 1_000_000 },
  ]),
);

test("has each age in its bracket, both ends in it, and nothing that is not an unpaid renewal", async () => {
  const period = { from: "2026-06-01", to: "2026-06-30", timeZone };
  const { rows } = await ask(database.db, "past-due-aging", period);
  const told = rows.map((row) => [row["currency"], row["days_past_due"], row["orders"], row["amount"]]);
  expect(told).toEqual([
    ["jpy", "0-7", "1", "9"],
    ["usd", "0-7", "2", "9"],
    ["usd", "8-14", "2", "24"],
    ["usd", "15-30", "2", "47"],
    ["usd", "31-60", "3", "98"],
    ["usd", "61+", "2", "463"],
  ]);
});
