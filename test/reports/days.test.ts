import { beforeEach, expect, test } from "vitest";
import { emptyMirror } from "../mirror/copies.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { ask } from "./ask.ts";
import { pastDue } from "./past-due.ts";
import { mirrorSales } from "./shop.ts";

const database = useTestDatabase();
beforeEach(() => emptyMirror(database.db));

/** One sale of 1 at the beginning of every hour (UTC), from two days before a day until two days after it. */
const everyHourAround = (day: string) =>
  Array.from({ length: 24 * 5 }, (_, n) => ({
    at: new Date(Date.parse(day) + (n - 48) * 3_600_000).toISOString(),
    amount: 1,
  }));

test.each([
  ["America/Los_Angeles", "2026-03-08", "2026-03-08T08:00:00Z", "2026-03-09T07:00:00Z", "23"],
  ["America/Los_Angeles", "2026-11-01", "2026-11-01T07:00:00Z", "2026-11-02T08:00:00Z", "25"],
  ["Pacific/Auckland", "2026-04-05", "2026-04-04T11:00:00Z", "2026-04-05T12:00:00Z", "25"],
  ["Pacific/Auckland", "2026-09-27", "2026-09-26T12:00:00Z", "2026-09-27T11:00:00Z", "23"],
  ["America/Los_Angeles", "2026-06-01", "2026-06-01T07:00:00Z", "2026-06-02T07:00:00Z", "24"],
  // Clocks go back to midnight: the day begins with the first one.
  ["America/Havana", "2026-10-31", "2026-10-31T04:00:00Z", "2026-11-01T04:00:00Z", "24"],
  ["America/Havana", "2026-11-01", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z", "25"],
  // Clocks go forward at midnight: the day begins at one.
  ["Africa/Cairo", "2026-04-23", "2026-04-22T22:00:00Z", "2026-04-23T22:00:00Z", "24"],
  ["Africa/Cairo", "2026-04-24", "2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z", "23"],
  ["Asia/Kathmandu", "2026-05-05", "2026-05-04T18:15:00Z", "2026-05-05T18:15:00Z", "24"],
])("a day of %s, %s, is the hours from %s before %s", async (zone, day, fromUtc, toUtc, hours) => {
  await mirrorSales(database.db, everyHourAround(day));
  const { rows, about } = await ask(database.db, "daily-control", {
    from: day,
    to: day,
    timeZone: zone,
  });
  expect(about.period).toMatchObject({ fromUtc, toUtc });
  expect(rows).toMatchObject([{ day, mirror_count: hours, mirror_sum: hours }]);
});

test("before a day that begins at one o'clock a month has no more rows, and what is past due is no older", async () => {
  const { db } = database;
  await mirrorSales(db, [{ at: "2017-09-23T12:00:00Z", amount: 5 }]);
  const september = { from: "2017-09-01", to: "2017-09-30", timeZone: "America/Asuncion" };
  const { rows, about } = await ask(db, "month-end", september);
  expect(about.period.toUtc).toBe("2017-10-01T04:00:00Z");
  expect(rows).toMatchObject([{ month: "2017-09-01", sales: "5" }]);
  expect((await ask(db, "network-monitor", september)).rows.map(({ month }) => month)).toEqual(["2017-09-01"]);
  await pastDue(db, [{ id: "due", createdAt: "2017-09-23T12:00:00.000Z", total: 700 }]);
  expect((await ask(db, "past-due-aging", september)).rows).toMatchObject([
    { days_past_due: "0-7", orders: "1", amount: "700" },
  ]);
});

test.each([
  ["Pacific/Auckland", "2026-10-31T10:59:59.999Z", "2026-10-31T11:00:00.000Z"],
  ["America/Los_Angeles", "2026-11-01T06:59:59.999Z", "2026-11-01T07:00:00.000Z"],
  ["America/Havana", "2026-11-01T03:59:59.999Z", "2026-11-01T04:00:00.000Z"],
])("October ends in %s between %s and %s", async (timeZone, last, first) => {
  await mirrorSales(database.db, [
    { at: last, amount: 10 },
    { at: first, amount: 200 },
  ]);
  const october = await ask(database.db, "month-end", {
    from: "2026-10-01",
    to: "2026-10-31",
    timeZone,
  });
  const november = await ask(database.db, "month-end", {
    from: "2026-11-01",
    to: "2026-11-30",
    timeZone,
  });
  expect(october.rows).toMatchObject([{ cumulative_gross_opening: "0", sales: "10", cumulative_gross_closing: "10" }]);
  expect(november.rows).toMatchObject([
    { cumulative_gross_opening: "10", sales: "200", cumulative_gross_closing: "210" },
  ]);
  const { rows } = await ask(database.db, "journal", {
    from: "2026-10-31",
    to: "2026-11-01",
    timeZone,
  });
  expect(rows.map((row) => [row["date"], row["debit"]])).toEqual([
    ["2026-10-31", "10"],
    ["2026-10-31", "0"],
    ["2026-11-01", "200"],
    ["2026-11-01", "0"],
  ]);
});
