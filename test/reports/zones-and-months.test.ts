import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { ask } from "./ask.ts";
import { type ServiceState, type WireObject, playHistory } from "./sandbox-history.ts";
import { dayOf, isCaptured, text } from "./service-sums.ts";

// Half an hour beside UTC; midnight that is skipped; and a day of 25 hours at a month's end.
const zones = ["Asia/Kolkata", "America/Havana", "Australia/Lord_Howe"] as const;
const all = { from: "2026-02-01", to: "2026-06-30" };
const big = (cell: unknown): bigint => BigInt(cell as string);

const isRefunded = (t: WireObject) => t["type"] === "refund" && t["status"] === "succeeded";

/** `key → sum` of money, without what is nothing. */
function sums(entries: Iterable<readonly [string, bigint]>): Record<string, string> {
  const found = new Map<string, bigint>();
  for (const [key, amount] of entries) found.set(key, (found.get(key) ?? 0n) + amount);
  return Object.fromEntries([...found].filter(([, sum]) => sum !== 0n).map(([key, sum]) => [key, `${sum}`]));
}

describe.each(["dill", "elder"])("a random history (%s)", (seed) => {
  let database: TestDatabase;
  let service: ServiceState;

  beforeAll(async () => {
    database = await createTestDatabase();
    service = await playHistory(
      database.db,
      { seed, orders: 250, subscriptions: 60, days: 110, startsAt: "2026-02-20T11:00:00.000Z" },
      4,
    );
  });
  afterAll(() => database.destroy());

  test.each(zones)("has each month's sales and refunds, by the days of %s", async (zone) => {
    const { rows } = await ask(database.db, "month-end", { ...all, timeZone: zone });
    const monthly = (is: (t: WireObject) => boolean) =>
      sums(
        service.transactions
          .filter(is)
          .map((t) => [
            `${dayOf(zone, text(t, "created_at")).slice(0, 7)} ${text(t, "currency")}`,
            BigInt(t["amount"] as number),
          ]),
      );
    const told = (column: string) =>
      sums(rows.map((r) => [`${r["month"]?.slice(0, 7)} ${r["currency"]}`, big(r[column])]));
    expect(told("sales")).toEqual(monthly(isCaptured));
    expect(told("refunds")).toEqual(monthly(isRefunded));
    expect(Object.keys(told("refunds")).length).toBeGreaterThan(3);
  });

  test.each(zones)("books each day's sales and refunds once, by the days of %s", async (zone) => {
    const { rows } = await ask(database.db, "journal", { ...all, timeZone: zone });
    const daily = (is: (t: WireObject) => boolean) =>
      sums(
        service.transactions
          .filter(is)
          .map((t) => [`${dayOf(zone, text(t, "created_at"))} ${text(t, "currency")}`, BigInt(t["amount"] as number)]),
      );
    const booked = (account: string) =>
      sums(
        rows
          .filter((r) => r["account"] === account)
          .map((r) => [
            `${r["date"]} ${r["currency"]}`,
            account === "4000" ? big(r["credit"]) - big(r["debit"]) : big(r["debit"]) - big(r["credit"]),
          ]),
      );
    expect(booked("4000")).toEqual(daily(isCaptured));
    expect(booked("4100")).toEqual(daily(isRefunded));
  });

  test.each(zones)("lists each refund with its days and what was given back by then, in %s", async (zone) => {
    const { rows } = await ask(database.db, "refunds", { ...all, timeZone: zone });
    const refunds = service.transactions.filter((t) => t["type"] === "refund");
    const expected = refunds.map((t) => {
      const sameOrder = (other: WireObject) => other["order_id"] === t["order_id"];
      const before = refunds.filter(
        (r) =>
          sameOrder(r) &&
          isRefunded(r) &&
          `${text(r, "created_at")}${text(r, "id")}` <= `${text(t, "created_at")}${text(t, "id")}`,
      );
      const sold = service.transactions
        .filter((s) => sameOrder(s) && s["type"] === "sale" && !["failed", "voided"].includes(text(s, "status")))
        .map((s) => text(s, "created_at"))
        .sort()[0];
      return [
        text(t, "id"),
        dayOf(zone, sold ?? ""),
        dayOf(zone, text(t, "created_at")),
        String(t["amount"]),
        String(before.reduce((sum, r) => sum + BigInt(r["amount"] as number), 0n)),
      ];
    });
    const told = rows.map((r) => [r["refund"], r["sold_on"], r["refunded_on"], r["amount"], r["cumulative"]]);
    expect(new Set(told.map(String))).toEqual(new Set(expected.map(String)));
    expect(told).toHaveLength(expected.length);
  });

  test("tells of each declined renewal what became of it, and what came of it", async () => {
    const { rows } = await ask(database.db, "dunning-funnel", all);
    const declined = new Set(
      service.transactions
        .filter((t) => t["type"] === "sale" && t["status"] === "failed")
        .map((t) => text(t, "order_id")),
    );
    const renewals = service.orders.filter((o) => declined.has(text(o, "id")) && Number(o["subscription_cycle"]) > 1);
    const paid = renewals.filter((o) => text(o, "status") !== "failed" && text(o, "status") !== "voided");
    const subscription = new Map(service.subscriptions.map((s) => [text(s, "id"), s]));
    const waiting = renewals.filter(
      (o) => o["status"] === "failed" && subscription.get(text(o, "subscription_id"))?.["status"] === "past_due",
    );
    const total = (column: string) => rows.reduce((n, r) => n + Number(r[column]), 0);
    expect([total("entered"), total("recovered"), total("in_progress")]).toEqual([
      renewals.length,
      paid.length,
      waiting.length,
    ]);
  });
});
