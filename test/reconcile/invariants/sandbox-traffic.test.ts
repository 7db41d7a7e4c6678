import { beforeEach, describe, expect, inject, it } from "vitest";
import { type InvariantResult, checkInvariants } from "../../../src/parts/reconcile/invariants/check-invariants.ts";
import { emptyMirror } from "../../mirror/copies.ts";
import { type TestSandbox, startTestSandbox } from "../../sandbox/harness.ts";
import { listed, told } from "../sandbox-observations.ts";
import { applyAll } from "./whole-mirror.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { emptyTables } from "../../support/empty-tables.ts";

const database = useTestDatabase();
let sandbox: TestSandbox;

beforeEach(async () => {
  await emptyMirror(database.db);
  await emptyTables(database.db, ["reconcile.findings"], { numbersRestart: true });
});

async function check(): Promise<InvariantResult[]> {
  const { clock } = await sandbox.control("GET", "");
  const now = new Date(Date.parse(clock.now) + 60_000);
  const results = await checkInvariants(database.db, { now, asOf: now }, { modes: {}, run: null, timeZone: "UTC" });
  return results.filter(({ breaches }) => breaches > 0);
}

const statuses = (table: string): Promise<string[]> =>
  database.db(`mirror.${table}`).distinct("status").pluck<string[]>("status");

describe.each(inject("isTorture") ? [1, 2, 3] : [1])("the traffic of the sandbox, seed %i", (seed) => {
  beforeEach(async () => {
    sandbox = await startTestSandbox(seed);
    await sandbox.control("POST", "/traffic", {
      orders: 400,
      subscriptions: 150,
      refunds: 60,
      declines: 40,
      chargebacks: 20,
      days: 100,
      seed,
    });
    return () => sandbox.close();
  });

  it("breaks no enforced identity, read from the lists alone or told by events as well", async () => {
    const final = await listed(sandbox);
    await applyAll(database.db, final);
    const imported = await check();
    await applyAll(database.db, await told(sandbox));
    const followed = await check();
    // Of everything that identities are about there is something.
    expect(await statuses("orders")).toEqual(
      expect.arrayContaining(["chargeback_accepted", "failed", "partially_refunded", "refunded"]),
    );
    expect(await statuses("subscriptions")).toEqual(
      expect.arrayContaining(["active", "canceled", "failed", "past_due"]),
    );
    const found = await database
      .db("reconcile.findings")
      .whereNot("identity", "double_loss_partial")
      .select("identity", "object_id", "differences");
    expect(
      [...imported, ...followed].filter(({ mode }) => mode === "enforce"),
      JSON.stringify(found.slice(0, 3)),
    ).toEqual([]);
  });
});
