import { expect, test } from "vitest";
import { exitCodeOf, resultJson } from "../../src/parts/reconcile/cli/reconcile.ts";
import { type Finding, acknowledgeFinding, recordFindings } from "../../src/parts/reconcile/findings/findings.ts";
import { type ReconcileResult, runTotals } from "../../src/parts/reconcile/runs/finish-run.ts";
import { none } from "./none.ts";
import { byCommand } from "../support/by-command.ts";
import { useTestDatabase } from "../support/use-database.ts";

const database = useTestDatabase();

const finding = (given: Partial<Finding> & Pick<Finding, "class">): Finding => ({
  key: [given.class, given.identity, given.currency, given.amountAtRiskMinor].join(":"),
  identity: null,
  severity: "warning",
  resource: "order",
  objectId: "order-1",
  differences: [],
  amountAtRiskMinor: null,
  currency: null,
  cause: null,
  evidence: {},
  ...given,
});
const identity = (name: string, mode: string | null) =>
  finding({ class: "identity", identity: name, evidence: mode === null ? {} : { mode } });

test("of identities only those that are enforced count beside the drift", async () => {
  const { db } = database;
  const sighting = { run: null, seenAt: new Date() };
  const unenforced = [identity("time", "observe"), identity("double_order", "off")];
  await recordFindings(db, sighting, unenforced);
  const before = await runTotals(db, 1, 0);
  expect(before.otherFindings).toEqual({});
  const strict = { failOnDrift: false, strict: true };
  expect(exitCodeOf({ complete: true, totals: before }, strict)).toBe(0);

  await recordFindings(db, sighting, [
    identity("total", "enforce"),
    // Of one that tells no mode nothing says that it may be left out: no report passes with it either.
    identity("term", null),
    finding({ class: "endpoint" }),
    finding({ class: "unsupported_sort" }),
    finding({ class: "mismatch" }),
  ]);
  const totals = await runTotals(db, 1, 0);
  expect(totals.otherFindings).toEqual({ total: 1, term: 1, endpoint: 1, unsupported_sort: 1 });
  expect(totals.left).toEqual({ mismatch: 1 });
  const [acknowledged] = await db("reconcile.findings").where("class", "mismatch").select("id");
  await acknowledgeFinding(db, {
    id: Number(acknowledged.id),
    by: byCommand("jo"),
    note: "looked into",
    at: new Date(),
  });
  expect(await runTotals(db, 1, 0)).toMatchObject({ left: none, acknowledged: { mismatch: 1 } });
  const withoutDrift = { ...totals, left: {} };
  expect(exitCodeOf({ complete: true, totals: withoutDrift }, strict)).toBe(3);
});

test("what is at risk is exact beyond what a number of JavaScript holds, also in the output for scripts", async () => {
  const { db } = database;
  const atRisk = [9_007_199_254_740_993n, 9_007_199_254_740_992n, 2n];
  const sighting = { run: null, seenAt: new Date() };
  const named = (amountAtRiskMinor: bigint, nth: number) =>
    finding({ class: "mismatch", key: `big:${nth}`, amountAtRiskMinor, currency: "idr" });
  await recordFindings(db, sighting, [
    ...atRisk.map(named),
    finding({ class: "behind", key: "big:behind", amountAtRiskMinor: 1n, currency: "idr" }),
  ]);
  const totals = await runTotals(db, 1, 0);
  expect(totals.amountAtRiskMinor).toEqual({ idr: 18_014_398_509_481_988n });
  const run = { id: 1, runKey: "k", kind: "full", t0: new Date(0), reportOnly: false };
  const coverage = { complete: true, gaps: [] };
  const result = {
    run,
    totals,
    coverage,
    complete: true,
    error: null,
  } as unknown as ReconcileResult;
  expect(JSON.parse(JSON.stringify(resultJson(result)))).toMatchObject({
    amount_at_risk_minor: { idr: "18014398509481988" },
  });
});
