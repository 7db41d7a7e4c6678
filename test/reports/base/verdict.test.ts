import { beforeEach, expect, test } from "vitest";
import { type Finding, healFindings, recordFindings } from "../../../src/parts/reconcile/findings/findings.ts";
import { latestAsOf } from "../../../src/parts/reports/base/period.ts";
import { type TestDatabase, createTestDatabase } from "../../support/database.ts";
import { ask } from "../ask.ts";
import { coverAll } from "../coverage.ts";
import { mirrorSales } from "../shop.ts";

let database: TestDatabase;
const may = { from: "2025-05-01", to: "2025-05-31" };
const proofOf = async (asked: object = {}) => (await ask(database.db, "month-end", { ...may, ...asked })).about.proof;

beforeEach(async () => {
  database = await createTestDatabase();
  await mirrorSales(database.db, [{ at: "2025-05-02T00:00:00Z", amount: 100 }]);
  return () => database.destroy();
});

const finding: Finding = {
  key: "behind:order:1",
  class: "behind",
  identity: null,
  severity: "critical",
  resource: "order",
  objectId: "1",
  differences: [{ field: "total", service: 5, mirror: 4 }],
  amountAtRiskMinor: 5n,
  currency: "usd",
  cause: "missed_webhook",
  evidence: {},
};

test("is INCOMPLETE where nothing was ever read", async () => {
  expect(await proofOf()).toMatchObject({
    verdict: "INCOMPLETE",
    coveragePercent: "0.00",
    readUntil: null,
  });
});

test("is PASS where everything up to the end of the period was read", async () => {
  const run = await coverAll(database.db, "2025-06-01T00:00:00Z");
  expect(await proofOf()).toMatchObject({
    verdict: "PASS",
    coveragePercent: "100.00",
    readUntil: "2025-06-01T00:00:00Z",
    lastRun: String(run),
  });
});

test("is INCOMPLETE where one resource was not read", async () => {
  await coverAll(database.db, "2025-06-01T00:00:00Z", {
    resources: ["order", "transaction", "customer"],
  });
  expect(await proofOf()).toMatchObject({ verdict: "INCOMPLETE", coveragePercent: "0.00" });
});

test("is INCOMPLETE where a gap lies before the period, since the opening balance needs it", async () => {
  await coverAll(database.db, "2025-05-02T00:00:00Z");
  await coverAll(database.db, "2025-06-01T00:00:00Z", { from: "2025-05-02T06:00:00Z" });
  const { verdict, coveragePercent, readUntil } = await proofOf();
  expect({ verdict, readUntil }).toEqual({
    verdict: "INCOMPLETE",
    readUntil: "2025-05-02T00:00:00Z",
  });
  expect(Number(coveragePercent)).toBeGreaterThan(99);
  expect(Number(coveragePercent)).toBeLessThan(100);
});

test("is INCOMPLETE where what was read was read too long ago", async () => {
  await coverAll(database.db, "2025-06-01T00:00:00Z");
  await database.db("reconcile.coverage").update({ completed_at: "2025-06-02T00:00:00Z" });
  expect(await proofOf()).toMatchObject({ verdict: "INCOMPLETE", readUntil: null });
});

test("is FAIL while a finding is open, and PASS when it is healed or acknowledged", async () => {
  const { db } = database;
  await coverAll(db, "2025-06-01T00:00:00Z");
  const seenAt = new Date("2025-06-01T01:00:00Z");
  await recordFindings(db, { run: null, seenAt }, [finding]);
  expect(await proofOf()).toMatchObject({ verdict: "FAIL", openFindings: "1" });
  await db("reconcile.findings").update({ ack_by: "ann", ack_at: seenAt, state: "acknowledged" });
  expect((await proofOf()).verdict).toBe("PASS");
});

test("says as of a time what was open then, also of a finding that was healed and came back", async () => {
  const { db } = database;
  await coverAll(db, "2025-06-01T00:00:00Z");
  const at = (minute: number) => new Date(Date.UTC(2025, 5, 2, 0, minute));
  const changed = async (minute: number, change: Promise<unknown>) => {
    await change;
    await db("reconcile.finding_versions")
      .where("recorded_at", ">", at(59))
      .update({ recorded_at: at(minute) });
  };
  await changed(1, recordFindings(db, { run: null, seenAt: at(1) }, [finding]));
  await changed(3, db("reconcile.findings").update({ state: "healed", healed_at: at(3) }));
  await changed(5, recordFindings(db, { run: null, seenAt: at(5) }, [finding]));
  const open = async (minute: number) =>
    (
      await ask(db, "exceptions", {
        from: "2025-06-02",
        to: "2025-06-02",
        asOf: at(minute).toISOString(),
      })
    ).rows;
  expect(await open(0)).toEqual([]);
  expect(await open(2)).toMatchObject([{ first_seen: "2025-06-02T00:01:00.000Z", healed_at: null }]);
  expect(await open(4)).toMatchObject([{ healed_at: "2025-06-02T00:03:00.000Z" }]);
  expect(await open(6)).toMatchObject([
    { healed_at: "2025-06-02T00:03:00.000Z", service_value: "total=5", mirror_value: "total=4" },
    { first_seen: "2025-06-02T00:05:00.000Z", healed_at: null, amount_at_risk: "5" },
  ]);
});

test("says as of a time the same for ever, whatever becomes of a finding later", async () => {
  const { db } = database;
  await coverAll(db, "2025-06-01T00:00:00Z");
  const seenAt = (day: number) => ({ run: null, seenAt: new Date(Date.UTC(2025, 5, day)) });
  await recordFindings(db, seenAt(2), [finding]);
  const { rows } = await db.raw<{ rows: { now: Date }[] }>("select clock_timestamp() as now");
  const june = { from: "2025-06-01", to: "2025-06-30", asOf: rows[0]?.now.toISOString() ?? null };
  await db("reconcile.finding_versions").update({ recorded_at: new Date(Date.UTC(2025, 5, 2)) });
  const then = await ask(db, "exceptions", june);
  expect(then.rows).toMatchObject([{ service_value: "total=5", amount_at_risk: "5", owner: null }]);
  expect(then.about.proof.verdict).toBe("INCOMPLETE");
  const difference = { field: "total", service: 900, mirror: 4 };
  const larger = { ...finding, severity: "warning" as const, amountAtRiskMinor: 900n };
  const steps = [
    () => recordFindings(db, seenAt(3), [{ ...larger, differences: [difference] }]),
    () => db("reconcile.findings").update({ ack_by: "ann", ack_at: new Date(0) }),
    () => db("reconcile.findings").update({ ack_by: "bob", ack_at: new Date(1) }),
    () => healFindings(db, seenAt(4), [finding.key]),
    () => recordFindings(db, seenAt(5), [finding]),
  ];
  for (const step of steps) {
    await step();
    expect(await ask(db, "exceptions", june)).toEqual(then);
  }
});

test("the daily control compares whole days that were read, and fails on one that differs", async () => {
  const { db } = database;
  const run = await coverAll(db, "2025-06-01T00:00:00Z");
  const sums = {
    run,
    slice: 2,
    day: "2025-05-02",
    currency: "usd",
    type: "sale",
    status: "succeeded",
  };
  await db("reconcile.daily_sums").insert({ ...sums, n: 1, sum_minor: 100 });
  const equal = await ask(db, "daily-control", may);
  expect(equal.about.proof.verdict).toBe("PASS");
  expect(equal.rows).toMatchObject([{ outcome: "equal", coverage_percent: "100.00", difference_sum: "0" }]);
  await db("reconcile.daily_sums").update({ sum_minor: 130 });
  const differs = await ask(db, "daily-control", may);
  expect(differs.about.proof.verdict).toBe("FAIL");
  expect(differs.rows).toMatchObject([{ outcome: "differs", service_sum: "130", difference_sum: "30" }]);
  const june = await ask(db, "daily-control", { from: "2025-06-01", to: "2025-06-01" });
  expect(june.rows).toEqual([]);
  expect(june.about.proof.verdict).toBe("INCOMPLETE");
});

test.each([1, -1])("the daily control compares sums with their sign, and shows them without (%i)", async (sign) => {
  const { db } = database;
  const run = await coverAll(db, "2025-06-01T00:00:00Z");
  const day = { run, slice: 2, day: "2025-05-02", currency: "usd", status: "succeeded" };
  await db("reconcile.daily_sums").insert([
    { ...day, type: "sale", n: 1, sum_minor: 100 },
    { ...day, type: "refund", n: 2, sum_minor: 20 * sign },
  ]);
  const at = "2025-05-02T01:00:00Z";
  const refund = { type: "refund", status: "succeeded", currency: "usd", last_cause: "event" };
  const refunds = [30 * sign, -10 * sign].map((amount, n) => ({
    ...refund,
    id: `refund ${n}`,
    amount,
    created_at: at,
    updated_at: at,
  }));
  await db("mirror.transactions").insert(refunds);
  const { rows } = await ask(db, "daily-control", may);
  expect(rows.filter((row) => row["type"] === "refund")).toMatchObject([
    { outcome: "equal", service_sum: "20", mirror_sum: "20", difference_sum: "0" },
  ]);
  await db("reconcile.daily_sums")
    .where({ type: "refund" })
    .update({ sum_minor: -20 * sign });
  const turned = await ask(db, "daily-control", may);
  expect(turned.rows.filter((row) => row["type"] === "refund")).toMatchObject([
    { outcome: "differs", service_sum: "20", mirror_sum: "-20", difference_sum: "40" },
  ]);
});

test("answers as of a time what the mirror said then, the same for ever", async () => {
  const { db } = database;
  const asOf = (await latestAsOf(db)).toISOString();
  await db.transaction(async (trx) => {
    await trx.raw("set local session_replication_role = replica");
    await trx.raw("update mirror.versions set recorded_at = recorded_at - interval '1 hour'");
  });
  const first = await ask(db, "month-end", { ...may, asOf });
  await mirrorSales(db, [
    {
      at: "2025-05-02T00:00:00Z",
      amount: 100,
      status: "chargeback",
      saleStatus: "chargeback",
      updatedAt: "2025-05-20T00:00:00Z",
    },
    { nth: 9, at: "2025-05-03T00:00:00Z", amount: 7 },
  ]);
  const again = await ask(db, "month-end", { ...may, asOf });
  expect(again).toEqual(first);
  expect(again.rows).toMatchObject([{ sales: "100", chargebacks: "0", cumulative_gross_closing: "100" }]);
  const live = await ask(db, "month-end", may);
  expect(live.rows).toMatchObject([{ sales: "107", chargebacks: "100", cumulative_gross_closing: "7" }]);
});

test("a chargeback counts when it was opened, and comes back when it is dismissed", async () => {
  const { db } = database;
  const order = { at: "2025-05-02T00:00:00Z", amount: 100 };
  const disputed = { ...order, status: "chargeback", saleStatus: "chargeback" };
  await mirrorSales(db, [{ ...disputed, updatedAt: "2025-05-20T00:00:00Z" }]);
  await mirrorSales(db, [{ ...order, status: "chargeback_dismissed", updatedAt: "2025-07-04T00:00:00Z" }]);
  const { rows } = await ask(db, "month-end", { from: "2025-05-01", to: "2025-07-31" });
  expect(rows).toMatchObject([
    {
      cumulative_gross_opening: "0",
      sales: "100",
      chargebacks: "100",
      reversals: "0",
      cumulative_gross_closing: "0",
    },
    {
      cumulative_gross_opening: "0",
      chargebacks: "0",
      reversals: "0",
      cumulative_gross_closing: "0",
    },
    {
      cumulative_gross_opening: "0",
      chargebacks: "0",
      reversals: "100",
      cumulative_gross_closing: "100",
    },
  ]);
  const [june] = (await ask(db, "chargebacks", { from: "2025-06-01", to: "2025-06-30" })).rows;
  expect(june).toMatchObject({ state: "opened", resolved_on: null, noticed_on: "2025-05-20" });
});
