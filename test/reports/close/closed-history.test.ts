import { afterAll, beforeAll, expect, test } from "vitest";
import { defaultAccounts } from "../../../src/parts/reports/base/account-map.ts";
import { closeMonth } from "../../../src/parts/reports/close/close-month.ts";
import { type TestDatabase, createTestDatabase } from "../../support/database.ts";
import { ask } from "../ask.ts";
import { type ServiceState, type WireObject, letTimePass, mirrorState, playHistory } from "../sandbox-history.ts";
import { balances } from "../service-sums.ts";

const timeZone = "America/Los_Angeles";
const months = ["2026-02", "2026-03", "2026-04"];
const big = (cell: string | null | undefined): bigint => BigInt(cell ?? "0");
let database: TestDatabase;
let service: ServiceState;

beforeAll(async () => {
  database = await createTestDatabase();
  service = await playHistory(database.db, {
    seed: "closed",
    orders: 200,
    subscriptions: 30,
    days: 80,
    startsAt: "2026-02-03T00:00:00.000Z",
  });
});
afterAll(() => database.destroy());

/** What the mirror knew before it learned of some orders, transactions and chargebacks. */
function known(state: ServiceState, share: number): ServiceState {
  const some = (objects: readonly WireObject[]) => objects.filter((_, n) => n % 10 < share);
  return { ...state, orders: some(state.orders), transactions: some(state.transactions) };
}

test("however late anything is learned, every month rolls forward and the last balance is the service's", async () => {
  const late = await createTestDatabase();
  try {
    for (const [n, month] of months.entries()) {
      await mirrorState(late.db, known(service, 3 + n * 3), "2026-06-01T00:00:00.000Z");
      await letTimePass(late.db);
      const request = { month, timeZone, accounts: defaultAccounts, reason: "a test", by: "anna" };
      await closeMonth(late.db, request);
      await letTimePass(late.db);
    }
    await mirrorState(late.db, service, "2026-06-01T00:00:00.000Z");
    const { rows } = await ask(late.db, "month-end", {
      from: "2026-02-01",
      to: "2026-05-31",
      timeZone,
    });
    const closing = new Map<string, bigint>();
    let corrections = 0;
    for (const row of rows) {
      const currency = row["currency"] ?? "";
      expect(big(row["cumulative_gross_opening"])).toBe(closing.get(currency) ?? 0n);
      const moved = big(row["sales"]) - big(row["refunds"]) - big(row["chargebacks"]) + big(row["reversals"]);
      expect(big(row["cumulative_gross_opening"]) + moved + big(row["corrections"])).toBe(
        big(row["cumulative_gross_closing"]),
      );
      closing.set(currency, big(row["cumulative_gross_closing"]));
      if (row["corrections"] !== "0") corrections++;
    }
    expect(corrections).toBeGreaterThan(3);
    const left = [...closing].map(([currency, sum]) => [currency, `${sum}`]);
    expect(Object.fromEntries(left)).toEqual(balances(service));
    const journal = await ask(late.db, "journal", {
      from: "2026-02-01",
      to: "2026-05-31",
      timeZone,
    });
    const cleared = new Map<string, bigint>();
    for (const row of journal.rows.filter(({ account }) => account === "1200")) {
      const known = cleared.get(row["currency"] ?? "") ?? 0n;
      cleared.set(row["currency"] ?? "", known + big(row["debit"]) - big(row["credit"]));
    }
    expect(Object.fromEntries(cleared)).toEqual(Object.fromEntries(closing));
  } finally {
    await late.destroy();
  }
});
