import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTestDatabase } from "../support/database.ts";
import type { TestDatabase } from "../support/database.ts";
import { ask } from "./ask.ts";
import type { Answer } from "./ask.ts";
import type { ServiceState, WireObject } from "./sandbox-history.ts";
import { playHistory } from "./sandbox-history.ts";
import { balances, dayOf, isCaptured, recurring, sumBy, text } from "./service-sums.ts";

const zones = ["UTC", "Pacific/Auckland", "America/Los_Angeles"] as const;
const all = { from: "2026-01-01", to: "2026-12-31" };

/** Rows as `key → "count sum"`, as the service's sums are told. */
const told = (rows: readonly Answer[], key: (row: Answer) => string, n: string, sum: string) =>
  Object.fromEntries(
    rows
      .map((row) => [key(row), `${row[n]} ${row[sum]}`])
      .sort(([a = ""], [b = ""]) => (a < b ? -1 : 1)),
  );
const big = (cell: string | null | undefined): bigint => BigInt(cell ?? "0");

describe.each(["amber", "birch", "cedar"])("a random history (%s)", (seed) => {
  let database: TestDatabase;
  let service: ServiceState;
  let orders: Map<string, WireObject>;
  const query = (name: string, timeZone: string = "UTC") =>
    ask(database.db, name, { ...all, timeZone });

  beforeAll(async () => {
    database = await createTestDatabase();
    service = await playHistory(
      database.db,
      { seed, orders: 250, subscriptions: 50, days: 100, startsAt: "2026-02-03T11:00:00.000Z" },
      3,
    );
    orders = new Map(service.orders.map((order) => [text(order, "id"), order]));
  }, 90_000);
  afterAll(() => database.destroy());

  test.each(zones)("has the service's counts and sums on every day of %s", async (zone) => {
    const { rows } = await query("daily-control", zone);
    const key = (row: Answer) => `${row["day"]} ${row["currency"]} ${row["type"]} ${row["status"]}`;
    expect(told(rows, key, "mirror_count", "mirror_sum")).toEqual(
      sumBy(
        service.transactions,
        (t) =>
          `${dayOf(zone, text(t, "created_at"))} ${text(t, "currency")} ${text(t, "type")} ${text(t, "status")}`,
      ),
    );
  });

  test.each(zones)(
    "rolls forward in every month of %s and currency to the service's balance",
    async (zone) => {
      const { rows } = await query("month-end", zone);
      const closing = new Map<string, bigint>();
      for (const row of rows) {
        const currency = row["currency"] ?? "";
        expect(big(row["opening"])).toBe(closing.get(currency) ?? 0n);
        const moved =
          big(row["sales"]) - big(row["refunds"]) - big(row["chargebacks"]) + big(row["reversals"]);
        expect(big(row["opening"]) + moved).toBe(big(row["closing"]));
        closing.set(currency, big(row["closing"]));
      }
      const left = [...closing].map(([currency, sum]) => [currency, `${sum}`]);
      expect(Object.fromEntries(left)).toEqual(balances(service));
      const sales = sumBy(
        service.transactions.filter(isCaptured),
        (t) => `${dayOf(zone, text(t, "created_at")).slice(0, 7)} ${text(t, "currency")}`,
      );
      const told = rows
        .filter((row) => row["sales"] !== "0")
        .map((row) => [`${row["month"]?.slice(0, 7)} ${row["currency"]}`, row["sales"]]);
      expect(Object.fromEntries(told)).toEqual(
        Object.fromEntries(Object.entries(sales).map(([key, of]) => [key, of.split(" ")[1]])),
      );
    },
  );

  test("has each refund once, up to the order's total", async () => {
    const { rows } = await query("refunds");
    const asObjects = rows.map((row) => ({ ...row, amount: Number(row["amount"]) }));
    const key = (t: WireObject) => `${text(t, "currency")} ${text(t, "status")}`;
    expect(sumBy(asObjects, key)).toEqual(
      sumBy(
        service.transactions.filter((t) => t["type"] === "refund"),
        key,
      ),
    );
    const full = new Set(
      rows.filter((row) => row["extent"] === "full").map((row) => row["order_id"]),
    );
    const refunded = service.orders.filter((o) => o["status"] === "refunded");
    expect(full.size).toBeGreaterThan(0);
    for (const order of refunded) expect(full).toContain(order["id"]);
  });

  test("has each chargeback in its state, and an inventory that ends with the open ones", async () => {
    const { rows } = await query("chargebacks");
    const states = {
      chargeback: "opened",
      chargeback_accepted: "accepted",
      chargeback_dismissed: "dismissed",
    };
    const disputed = service.orders.filter((o) => text(o, "status").startsWith("chargeback"));
    const key = (state: string, currency: string) => `${currency} ${state}`;
    expect(
      sumBy(
        rows.map((row) => ({ ...row, total: Number(row["amount"]) })),
        (r) => key(text(r, "state"), text(r, "currency")),
        "total",
      ),
    ).toEqual(
      sumBy(
        disputed,
        (o) => key(states[o["status"] as keyof typeof states], text(o, "currency")),
        "total",
      ),
    );
    const inventory = (await query("chargeback-inventory")).rows;
    expect(told(inventory, (row) => row["currency"] ?? "", "closing_count", "closing")).toEqual({
      eur: "0 0",
      usd: "0 0",
      ...sumBy(
        disputed.filter((o) => o["status"] === "chargeback"),
        (o) => text(o, "currency"),
        "total",
      ),
    });
    for (const row of inventory) {
      expect(
        big(row["opening"]) + big(row["received"]) - big(row["accepted"]) - big(row["dismissed"]),
      ).toBe(big(row["closing"]));
    }
  });

  test("has each declined attempt once", async () => {
    const { rows } = await query("declines");
    const failed = service.transactions.filter(
      (t) => t["type"] === "sale" && t["status"] === "failed",
    );
    const counted = new Map<string, [number, bigint]>();
    for (const row of rows) {
      const [n, sum] = counted.get(row["currency"] ?? "") ?? [0, 0n];
      counted.set(row["currency"] ?? "", [n + Number(row["declines"]), sum + big(row["amount"])]);
    }
    const sums = [...counted].map(([currency, [n, sum]]) => [currency, `${n} ${sum}`]);
    expect(Object.fromEntries(sums)).toEqual(sumBy(failed, (t) => text(t, "currency")));
    expect(rows.filter((row) => row["code_group"] === "other")).toEqual([]);
  });

  test("has every declined renewal in one cohort, and each is recovered, lost or in progress", async () => {
    const { rows } = await query("dunning-funnel");
    const declined = new Set(
      service.transactions
        .filter((t) => t["type"] === "sale" && t["status"] === "failed")
        .map((t) => text(t, "order_id")),
    );
    const renewals = [...orders.values()].filter(
      (o) => declined.has(text(o, "id")) && Number(o["subscription_cycle"]) > 1,
    );
    expect(renewals.length).toBeGreaterThan(0);
    const sums = new Map<string, [bigint, bigint]>();
    for (const row of rows) {
      expect(big(row["recovered"]) + big(row["lost"]) + big(row["in_progress"])).toBe(
        big(row["entered"]),
      );
      const [n, sum] = sums.get(row["currency"] ?? "") ?? [0n, 0n];
      sums.set(row["currency"] ?? "", [n + big(row["entered"]), sum + big(row["entered_amount"])]);
    }
    const told = [...sums].map(([currency, [n, sum]]) => [currency, `${n} ${sum}`]);
    expect(Object.fromEntries(told)).toEqual(sumBy(renewals, (o) => text(o, "currency"), "total"));
  });

  test("has what is past due, whatever its age", async () => {
    const { rows } = await query("past-due-aging");
    const due = new Set(
      service.subscriptions.filter((s) => s["status"] === "past_due").map((s) => text(s, "id")),
    );
    const unpaid = service.orders.filter(
      (o) =>
        o["status"] === "failed" &&
        Number(o["subscription_cycle"]) > 1 &&
        due.has(text(o, "subscription_id")),
    );
    const sum = (n: string) => rows.reduce((total, row) => total + big(row[n]), 0n);
    expect(sum("orders")).toBe(BigInt(unpaid.length));
    expect(sum("amount")).toBe(
      unpaid.reduce((total, o) => total + BigInt(o["total"] as number), 0n),
    );
  });

  test("moves recurring amounts to what the live subscriptions are worth", async () => {
    const { rows } = await query("mrr");
    expect(Object.fromEntries(rows.map((row) => [row["currency"], row["closing"]]))).toEqual(
      recurring(service),
    );
    const march = (await ask(database.db, "mrr", { from: "2026-03-01", to: "2026-03-31" })).rows;
    for (const row of [...rows, ...march]) {
      const gained = big(row["new_mrr"]) + big(row["expansion"]) + big(row["reactivation"]);
      const lost =
        big(row["contraction"]) + big(row["churn_voluntary"]) + big(row["churn_involuntary"]);
      expect(big(row["opening"]) + gained - lost).toBe(big(row["closing"]));
    }
  });

  test("counts each captured sale of a brand once", async () => {
    const { rows } = await query("network-monitor");
    const settled = rows
      .filter((row) => row["brand"] === "visa")
      .reduce((total, row) => total + Number(row["settled"]), 0);
    const sales = service.transactions.filter(
      (t) => isCaptured(t) && (t["payment_method"] as { card_brand: string }).card_brand === "visa",
    );
    expect(settled).toBe(sales.length);
  });

  test("books every movement in balanced entries that clear to the balance", async () => {
    const { rows } = await query("journal", "Pacific/Auckland");
    const entries = new Map<string, bigint>();
    const cleared = new Map<string, bigint>();
    for (const row of rows) {
      const value = big(row["debit"]) - big(row["credit"]);
      entries.set(row["number"] ?? "", (entries.get(row["number"] ?? "") ?? 0n) + value);
      if (row["account"] !== "1200") continue;
      cleared.set(row["currency"] ?? "", (cleared.get(row["currency"] ?? "") ?? 0n) + value);
    }
    expect([...entries.values()].filter((sum) => sum !== 0n)).toEqual([]);
    const sums = [...cleared].map(([currency, sum]) => [currency, `${sum}`]);
    expect(Object.fromEntries(sums)).toEqual(balances(service));
  });
});
