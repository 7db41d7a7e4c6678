import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { type Answer, ask } from "./ask.ts";
import { type ServiceState, type WireObject, playHistory } from "./sandbox-history.ts";
import { deliver, sendDecisionOf, orderEvent } from "./deliveries.ts";
import { balances, dayOf, isCaptured, recurring, sumBy, text } from "./service-sums.ts";

const zones = ["UTC", "Pacific/Auckland", "America/Los_Angeles"] as const;
const all = { from: "2026-01-01", to: "2026-12-31" };

/** Rows as `key → "count sum"`, as the service's sums are told. */
const told = (rows: readonly Answer[], key: (row: Answer) => string, n: string, sum: string) =>
  Object.fromEntries(
    rows.map((row) => [key(row), `${row[n]} ${row[sum]}`]).sort(([a = ""], [b = ""]) => (a < b ? -1 : 1)),
  );
const big = (cell: string | null | undefined): bigint => BigInt(cell ?? "0");

describe.each(["amber", "birch", "cedar"])("a random history (%s)", (seed) => {
  let database: TestDatabase;
  let service: ServiceState;
  let orders: Map<string, WireObject>;
  const query = (name: string, timeZone: string = "UTC") => ask(database.db, name, { ...all, timeZone });

  beforeAll(async () => {
    database = await createTestDatabase();
    service = await playHistory(
      database.db,
      { seed, orders: 250, subscriptions: 50, days: 100, startsAt: "2026-02-03T11:00:00.000Z" },
      3,
    );
    orders = new Map(service.orders.map((order) => [text(order, "id"), order]));
  });
  afterAll(() => database.destroy());

  test.each(zones)("has the service's counts and sums on every day of %s", async (zone) => {
    const { rows } = await query("daily-control", zone);
    const key = (row: Answer) => `${row["day"]} ${row["currency"]} ${row["type"]} ${row["status"]}`;
    expect(told(rows, key, "mirror_count", "mirror_sum")).toEqual(
      sumBy(
        service.transactions,
        (t) => `${dayOf(zone, text(t, "created_at"))} ${text(t, "currency")} ${text(t, "type")} ${text(t, "status")}`,
      ),
    );
  });

  test.each(zones)("rolls forward in every month of %s and currency to the service's balance", async (zone) => {
    const { rows } = await query("month-end", zone);
    const closing = new Map<string, bigint>();
    for (const row of rows) {
      const currency = row["currency"] ?? "";
      expect(big(row["cumulative_gross_opening"])).toBe(closing.get(currency) ?? 0n);
      const moved = big(row["sales"]) - big(row["refunds"]) - big(row["chargebacks"]) + big(row["reversals"]);
      expect(big(row["cumulative_gross_opening"]) + moved).toBe(big(row["cumulative_gross_closing"]));
      closing.set(currency, big(row["cumulative_gross_closing"]));
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
  });

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
    const full = new Set(rows.filter((row) => row["extent"] === "full").map((row) => row["order_id"]));
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
    ).toEqual(sumBy(disputed, (o) => key(states[o["status"] as keyof typeof states], text(o, "currency")), "total"));
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
      expect(big(row["opening"]) + big(row["received"]) - big(row["accepted"]) - big(row["dismissed"])).toBe(
        big(row["closing"]),
      );
    }
  });

  test("has each declined attempt once", async () => {
    const { rows } = await query("declines");
    const failed = service.transactions.filter((t) => t["type"] === "sale" && t["status"] === "failed");
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
      expect(big(row["recovered"]) + big(row["lost"]) + big(row["in_progress"])).toBe(big(row["entered"]));
      const [n, sum] = sums.get(row["currency"] ?? "") ?? [0n, 0n];
      sums.set(row["currency"] ?? "", [n + big(row["entered"]), sum + big(row["entered_amount"])]);
    }
    const told = [...sums].map(([currency, [n, sum]]) => [currency, `${n} ${sum}`]);
    expect(Object.fromEntries(told)).toEqual(sumBy(renewals, (o) => text(o, "currency"), "total"));
  });

  test("has what is past due, whatever its age", async () => {
    const { rows } = await query("past-due-aging");
    const due = new Set(service.subscriptions.filter((s) => s["status"] === "past_due").map((s) => text(s, "id")));
    const unpaid = service.orders.filter(
      (o) => o["status"] === "failed" && Number(o["subscription_cycle"]) > 1 && due.has(text(o, "subscription_id")),
    );
    const sum = (n: string) => rows.reduce((total, row) => total + big(row[n]), 0n);
    expect(sum("orders")).toBe(BigInt(unpaid.length));
    expect(sum("amount")).toBe(unpaid.reduce((total, o) => total + BigInt(o["total"] as number), 0n));
  });

  test("moves recurring amounts to what the live subscriptions are worth", async () => {
    const { rows } = await query("mrr");
    expect(Object.fromEntries(rows.map((row) => [row["currency"], row["closing"]]))).toEqual(recurring(service));
    const march = (await ask(database.db, "mrr", { from: "2026-03-01", to: "2026-03-31" })).rows;
    for (const row of [...rows, ...march]) {
      const gained = big(row["new_mrr"]) + big(row["expansion"]) + big(row["reactivation"]);
      const lost = big(row["contraction"]) + big(row["churn_voluntary"]) + big(row["churn_involuntary"]);
      expect(big(row["opening"]) + gained - lost).toBe(big(row["closing"]));
    }
  });

  test("counts each captured sale of a brand once", async () => {
    const { rows } = await query("network-monitor");
    const settled = rows
      .filter((row) => row["brand"] === "visa")
      .reduce((total, row) => total + Number(row["sales"]), 0);
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

  describe("whose changes were announced, some late, some not at all", () => {
    const statement = async (from: string, to: string) =>
      (await ask(database.db, "delivery-statement", { from, to })).rows;
    const sums = (rows: readonly Answer[], name: string) => rows.reduce((sum, row) => sum + Number(row[name]), 0);

    beforeAll(() =>
      deliver(database.db, [
        ...service.orders.map((order) => ({
          resource: "order",
          id: text(order, "id"),
          at: text(order, "updated_at"),
          type: orderEvent(text(order, "status")),
        })),
        ...service.customers.map((customer) => ({
          resource: "customer",
          id: text(customer, "id"),
          at: text(customer, "created_at"),
          type: "customer.created",
        })),
      ]),
    );

    test("has each object's last change once, and what became of its event", async () => {
      const rows = await statement(all.from, all.to);
      const counted = (resource: string, event: string) =>
        rows.find((row) => row["resource"] === resource && row["event"] === event);
      const fates = new Map<string, { n: number; in_time: number; late: number }>();
      for (const order of service.orders) {
        const event = orderEvent(text(order, "status")) ?? "none is documented";
        const known = fates.get(event) ?? { n: 0, in_time: 0, late: 0 };
        const fate = event === "none is documented" ? "missed" : sendDecisionOf(text(order, "id"));
        fates.set(event, {
          n: known.n + 1,
          in_time: known.in_time + (fate === "in_time" ? 1 : 0),
          late: known.late + (fate === "late" ? 1 : 0),
        });
      }
      expect(fates.size).toBeGreaterThan(3);
      for (const [event, { n, in_time, late }] of fates) {
        const announced = event === "none is documented" ? 0 : n;
        expect(counted("order", event)).toMatchObject({
          changes: `${n}`,
          announced: `${announced}`,
          received: `${in_time + late}`,
          in_time: `${in_time}`,
          late: `${late}`,
          missed: `${announced - in_time - late}`,
          first_fill: "0",
        });
      }
      expect(counted("customer", "customer.created")).toMatchObject({
        changes: `${service.customers.length}`,
      });
      const subscriptions = rows.filter((row) => row["resource"] === "subscription");
      expect(sums(subscriptions, "changes")).toBe(service.subscriptions.length);
    });

    test("has the year's changes in the sum of its months", async () => {
      const year = sums(await statement(all.from, all.to), "changes");
      let months = 0;
      for (const month of ["01", "02", "03", "04", "05"]) {
        months += sums(await statement(`2026-${month}-01`, `2026-${month}-28`), "changes");
        if (month !== "02") {
          const last = month === "04" ? "30" : "31";
          months += sums(await statement(`2026-${month}-29`, `2026-${month}-${last}`), "changes");
        }
      }
      expect(months).toBe(year);
    });

    test("does not call missed what had changed before the mirror was first filled", async () => {
      const { db } = database;
      const [run] = await db("reconcile.runs")
        .insert({
          run_key: "the first fill",
          kind: "import",
          t0: "2026-04-01T00:00:00Z",
          state: "complete",
          first_fill: true,
        })
        .returning<{ id: string }[]>("id");
      const filled = await statement("2026-01-01", "2026-03-31");
      expect(sums(filled, "missed")).toBe(0);
      expect(sums(filled, "received")).toBe(sums(filled, "changes"));
      expect(sums(filled, "first_fill")).toBeGreaterThan(50);
      expect(sums(await statement("2026-04-01", "2026-12-31"), "first_fill")).toBe(0);
      await db("reconcile.runs").where({ id: run?.id }).delete();
    });
  });
});
