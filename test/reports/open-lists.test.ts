import { afterEach, beforeEach, expect, test } from "vitest";
import { latestAsOf } from "../../src/parts/reports/base/period.ts";
import { refusalText } from "../../src/parts/reports/cli/close-words.ts";
import { whyNotProved } from "../../src/parts/reports/close/refusal.ts";
import { type ReportFacts, readProof } from "../../src/parts/reports/base/report-facts.ts";
import { letTimePass } from "./sandbox-history.ts";
import { type HostileService, refusal, startHostileService } from "../reconcile/hostile-service.ts";
import { type ReconcileStand, createReconcileStand } from "../reconcile/reconcile-stand.ts";

const hourMs = 3_600_000;
const hoursAgo = (hours: number): string => new Date(Date.now() - hours * hourMs).toISOString();

let service: HostileService;
let stand: ReconcileStand;

/** Everything was read a day ago; then an old sale was charged back, and no webhook told it. */
beforeEach(async () => {
  service = await startHostileService();
  stand = await createReconcileStand(service.url);
  service.quirks = { skewMs: -24 * hourMs };
  const { complete } = await stand.run();
  if (!complete) throw new Error("the first run did not read everything");
  const at = hoursAgo(18);
  const [order] = service.objects["orders"] ?? [];
  const [sale] = service.objects["transactions"] ?? [];
  Object.assign(order ?? {}, { status: "chargeback", updated_at: at });
  Object.assign(sale ?? {}, { status: "chargeback", updated_at: at });
  return async () => {
    await stand.close();
    await service.close();
  };
});
afterEach(() => {
  service.quirks = {};
});

/** What reports say of everything up to twelve hours ago, when the sale was charged back. */
async function verdict(): Promise<unknown> {
  const { rows } = await stand.database.db.raw<{ rows: { verdict: string }[] }>(
    "select verdict from reports.verdict(?, ?)",
    [hoursAgo(36), hoursAgo(12)],
  );
  return rows[0]?.verdict;
}

/** What a close of a month that ended then would be refused for. */
async function refusalOfClose(): Promise<string> {
  const { db } = stand.database;
  await letTimePass(db);
  const period = { from: "", to: "", timeZone: "UTC", fromUtc: hoursAgo(36), toUtc: hoursAgo(12) };
  const asOf = (await latestAsOf(db)).toISOString();
  const proof = await readProof(db, period, asOf);
  const abouts = [{ report: "month-end", proof } as ReportFacts];
  const unproved = { month: "2025-05", period, asOf, abouts, differing: new Map() };
  return refusalText(await whyNotProved(db, unproved));
}

const chargebacks = () => stand.database.db("mirror.chargebacks").pluck<string[]>("order_id");

test("a night that could not read the charged-back sales proves no balance, whatever else it read", async () => {
  expect(await verdict()).toBe("INCOMPLETE");
  service.quirks = {
    instead: ({ list, query }) =>
      list === "transactions" && query.get("status") === "chargeback"
        ? refusal(400, "invalid_value", "status")
        : undefined,
  };
  expect(await stand.run({ kind: "nightly" })).toMatchObject({ complete: false });
  expect(await chargebacks()).toEqual([]);
  expect(await verdict()).toBe("INCOMPLETE");
  expect(await refusalOfClose()).toMatch(
    /INCOMPLETE: all 1 reports.*Chargebacks, .* of older sales have not been read since .*tallyhook\.js reconcile/s,
  );

  service.quirks = {};
  expect(await stand.run({ kind: "nightly" })).toMatchObject({ complete: true });
  expect(await chargebacks()).toEqual(["order-0000"]);
  expect(await verdict()).toBe("PASS");
});

test("what was created lately, read as a range, says nothing of what was charged back", async () => {
  service.quirks = {};
  const range = { rangeFrom: new Date(hoursAgo(25)), rangeTo: new Date() };
  expect(await stand.run({ kind: "range", ...range })).toMatchObject({ complete: true });
  expect(await chargebacks()).toEqual([]);
  expect(await verdict()).toBe("INCOMPLETE");
});

test("open items that a night did not come to read prove nothing, though another run has dropped them since", async () => {
  service.quirks = {};
  const { run } = await stand.run({ kind: "nightly" });
  expect(await verdict()).toBe("PASS");
  // As a night leaves it that ran out of time: the list of its status did not show it any more.
  const item = { run: run.id, resource: "transaction", id: "sale-of-order-0001", why: "open_item" };
  const at = new Date();
  await stand.database.db("reconcile.doubts").insert({ ...item, due_at: at, noticed_at: at });
  expect(await verdict()).toBe("INCOMPLETE");
  const range = { rangeFrom: new Date(hoursAgo(25)), rangeTo: new Date() };
  expect(await stand.run({ kind: "range", ...range })).toMatchObject({ complete: true });
  expect(await verdict()).toBe("INCOMPLETE");
  expect(await stand.run({ kind: "nightly" })).toMatchObject({ complete: true });
  expect(await verdict()).toBe("PASS");
});
