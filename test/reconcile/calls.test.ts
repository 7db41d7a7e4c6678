import { expect, test } from "vitest";
import { listOrders } from "../../src/core/contract/resources/orders.ts";
import { estimatePlan, makePlan } from "../../src/parts/reconcile/plan.ts";
import { defaultReconcileSettings } from "../../src/parts/reconcile/settings.ts";
import { type Json, type TestSandbox, startTestSandbox } from "../sandbox/harness.ts";
import { startDeliveries } from "./deliveries.ts";
import { advanceDays, snapshotOf } from "./planned-changes.ts";
import { createReconcileStand } from "./reconcile-stand.ts";

const pageSize = 10;
const settings = { ...defaultReconcileSettings, graceMs: 0 };

/** What the design reckons for a night (its steps 2 to 9), by what the service holds. A list that is empty costs a call, too. */
async function reckonedCalls(
  sandbox: TestSandbox,
  { t0, coveredUntil }: { t0: Date; coveredUntil: Date },
): Promise<number> {
  const { overlapMs, failedHorizonMs, voidedHorizonMs, rotationNights } = settings;
  const snapshot = (await snapshotOf(sandbox)) as unknown as Record<string, Json[]>;
  const [orders = [], transactions = [], customers = [], subscriptions = []] = [
    snapshot["orders"],
    snapshot["transactions"],
    snapshot["customers"],
    snapshot["subscriptions"],
  ];
  const from = coveredUntil.getTime() - overlapMs;
  const since = (all: Json[], ms: number) => all.filter((one) => Date.parse(one.created_at) >= ms);
  const having = (all: Json[], fields: Record<string, string>) =>
    all.filter((one) => Object.entries(fields).every(([field, value]) => one[field] === value));
  const nightly = (all: Json[]) => (all.length - since(all, from).length) / rotationNights;
  const rows = [
    ...[orders, customers, transactions, subscriptions].map((all) => since(all, from).length),
    having(transactions, { status: "chargeback" }).length,
    having(transactions, { status: "pending" }).length,
    having(transactions, { status: "in_progress" }).length,
    having(transactions, { type: "refund", status: "failed" }).length,
    having(since(transactions, t0.getTime() - voidedHorizonMs), { status: "voided" }).length,
    having(since(orders, t0.getTime() - failedHorizonMs), { status: "failed" }).length,
    ...["active", "paused", "past_due"].map((status) => having(subscriptions, { status }).length),
    ...[customers, orders, transactions].map(nightly),
    // The same orders in the other direction.
    nightly(orders),
  ];
  const pages = rows.map((n) => Math.max(1, Math.ceil(n / pageSize)));
  return pages.reduce((all, n) => all + n, 0);
}

test("a night costs the calls that the design reckons, and that a dry run foretells", async () => {
  const sandbox = await startTestSandbox("calls");
  const stand = await createReconcileStand(sandbox.url);
  try {
    await sandbox.control("PUT", "/switches", { maximum_page_size: pageSize });
    const { db } = stand.database;
    const { deliver } = startDeliveries(db, sandbox, () => false);
    await sandbox.control("POST", "/traffic", {
      orders: 300,
      subscriptions: 40,
      days: 40,
      seed: 1,
    });
    await deliver();
    const filled = await stand.run({ kind: "import" });
    // Otherwise the night reads everything.
    expect(filled).toMatchObject({ complete: true, error: null });
    await advanceDays(sandbox, 1);
    await deliver();

    const { date } = await stand.deps.client.get(listOrders, { query: { limit: "1" } });
    const wanted = { kind: "nightly", t0: date, rangeFrom: null, rangeTo: null } as const;
    const estimated = await estimatePlan(db, await makePlan(db, settings, wanted), pageSize);
    const foretold = estimated.reduce((all, { calls }) => all + calls, 0);
    const reckoned = await reckonedCalls(sandbox, { t0: date, coveredUntil: filled.run.t0 });
    const { totals, ...night } = await stand.run({ kind: "nightly" });

    expect(night).toMatchObject({ complete: true, error: null });
    // A recheck costs a call, too.
    expect(totals).toMatchObject({ healed: {}, left: {} });
    // So many that one more, for the search for the page size, is within the tenth.
    expect(reckoned).toBeGreaterThan(20);
    for (const [one, other] of [
      [totals.calls, reckoned],
      [totals.calls, foretold],
      [foretold, reckoned],
    ] as const) {
      expect(Math.abs(one - other) / other, `${one} beside ${other}`).toBeLessThanOrEqual(0.1);
    }
  } finally {
    await stand.close();
    await sandbox.close();
  }
});
