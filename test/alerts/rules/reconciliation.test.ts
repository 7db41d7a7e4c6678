import type { Knex } from "knex";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { assessRun, runConditions } from "../../../src/parts/alerts/rules/reconciliation.ts";
import type { RunOutcome } from "../../../src/app/run-listener.ts";
import { sendDigests } from "../../../src/parts/alerts/rules/digests.ts";
import { createLog } from "../../../src/platform/log.ts";
import { type TestDatabase, createTestDatabase } from "../../support/database.ts";
import { acceptAlerts, refuseAlerts } from "../refused-alerts.ts";
import { messagesOf, sendDue } from "../timeline-stand.ts";
import { unresolved } from "../sweep-stand.ts";
import { emptyAlerts, settingsOf, testAlertContext } from "../test-alert-context.ts";

const log = createLog({ level: "silent", name: "test" });

let database: TestDatabase;
let db: Knex;
const alertContext = testAlertContext();
beforeAll(async () => {
  database = await createTestDatabase();
  ({ db } = database);
});
afterAll(() => database.destroy());
beforeEach(async () => {
  await emptyAlerts(db);
  await db("reconcile.findings").delete();
});

const outcome = (id: number, fields: Partial<RunOutcome> = {}): RunOutcome => ({
  id,
  kind: "nightly",
  isInitialImport: false,
  complete: true,
  error: null,
  healed: {},
  left: {},
  acknowledged: {},
  amountAtRiskMinor: {},
  slices: { failed: 0, pending: 0 },
  confirmed: {},
  ...fields,
});

async function end(run: RunOutcome): Promise<string[]> {
  await assessRun({ db, log }, alertContext, run);
  await sendDue(db);
  return unresolved(db);
}

const finding = (fields: object) =>
  db("reconcile.findings").insert({
    key: crypto.randomUUID(),
    class: "identity",
    severity: "critical",
    resource: "order",
    object_id: "order-1",
    first_seen: "2025-03-01T00:00:00Z",
    last_seen: "2025-03-01T00:00:00Z",
    ...fields,
  });

describe("what a run tells", () => {
  test("drift that is left, drift that was healed, and an end that is clean", async () => {
    const left = { left: { mismatch: 2 }, healed: { behind: 1 }, amountAtRiskMinor: { usd: 500n } };
    expect(await end(outcome(1, left))).toEqual(["drift:1 error open"]);
    expect(await end(outcome(1, left)), "again").toEqual(["drift:1 error open"]);
    expect(await end(outcome(2, { healed: { missing_here: 3 } }))).toEqual(["drift:2 warning open"]);
    expect(await end(outcome(3))).toEqual([]);
    expect(await messagesOf(db, "drift:1")).toEqual(["trigger opened", "resolve resolved"]);
    expect(await messagesOf(db, "drift:2"), "it asks for nothing").toEqual([]);
  });

  test("drift that was healed is on the daily list, with how much it was, and its end is no message", async () => {
    await end(outcome(1, { healed: { missing_here: 3 } }));
    await end(outcome(2, { kind: "range", healed: { behind: 1 } }));
    const tomorrow = testAlertContext({
      clock: { now: () => new Date(Date.now() + 24 * 3_600_000) },
    });
    const lists = () => db("alerts.outbox").pluck<{ title: string; severity: string; facts: object[] }[]>("message");
    for (let n = 0; n < 2; n++) await db.transaction((trx) => sendDigests(trx, tomorrow));
    expect(await lists()).toMatchObject([
      {
        title: "4 differences from the service found and healed",
        severity: "info",
        facts: [{ label: "Differences found and healed", value: "4" }],
        items: [],
      },
    ]);
    expect(await end(outcome(3))).toEqual([]);
    expect(await lists()).toHaveLength(1);
  });

  test("drift that is left when the list is off, and healed drift then, are messages as ever", async () => {
    const off = testAlertContext({ settings: settingsOf({ digests: { when: "off" } }) });
    await assessRun({ db, log }, off, outcome(1, { healed: { behind: 1 } }));
    expect(await messagesOf(db, "drift:1")).toEqual(["trigger opened"]);
  });

  test("no difference where customers were deleted at the service, which no webhook announces", async () => {
    expect(await end(outcome(1, { healed: { missing_there: 3 } }))).toEqual([]);
    const missed = { healed: { missing_there: 3, behind: 1 } };
    expect(await end(outcome(2, missed))).toEqual(["drift:2 warning open"]);
    const left = { left: { missing_there: 1 } };
    expect(await end(outcome(3, left))).toEqual(["drift:3 error open"]);
  });

  test.each([
    ["parts failed", { slices: { failed: 2, pending: 1 } }, "2 parts could not be read"],
    ["parts were not read", { slices: { failed: 0, pending: 1 } }, "1 part was not read in time"],
    ["objects were unreadable", { left: { unreadable: 3 } }, "3 objects cannot be read"],
    ["an unreadable object was acknowledged", { acknowledged: { unreadable: 1 } }, "1 object cannot be read"],
    ["rechecks were not concluded", { confirmed: { unsettled: 1 } }, "1 object could not be compared in time"],
    ["an earlier gap is open", {}, "a part of history is not proved"],
    ["the run says why", { error: "the service did not answer" }, "the service did not answer"],
  ])("an incomplete run has one reason, in title and facts: %s", (_, fields, reason) => {
    const run = outcome(1, { complete: false, ...fields });
    const [condition] = runConditions(alertContext.settings.rules, run, new Date(0));
    expect(condition?.title).toBe(`Reconciliation INCOMPLETE (run 1): ${reason}`);
    expect(condition?.facts[0]).toEqual({ label: "Reason", value: reason });
  });

  test("a run that left something out; one of a range does not speak for the whole", async () => {
    const failed = { complete: false, error: "a slice failed", slices: { failed: 1, pending: 2 } };
    expect(await end(outcome(1, failed))).toEqual(["incomplete:1 error open"]);
    expect(await end(outcome(2, { kind: "range" }))).toEqual(["incomplete:1 error open"]);
    expect(await end(outcome(3))).toEqual([]);
  });

  test("identities that are enforced, while they do not hold", async () => {
    await finding({
      identity: "one_sale",
      evidence: { mode: "enforce" },
      amount_at_risk_minor: 900,
      currency: "usd",
    });
    await finding({ identity: "one_sale", evidence: { mode: "enforce" }, object_id: "order-2" });
    await finding({ identity: "double_order", evidence: { mode: "observe" } });
    await finding({
      identity: "time",
      severity: "warning",
      evidence: { mode: "enforce" },
      state: "acknowledged",
    });
    expect(await end(outcome(1))).toEqual(["identity:one_sale critical open"]);
    const [message] = await db("alerts.outbox").pluck<{ title: string; facts: object[] }[]>("message");
    expect(message).toMatchObject({
      title: "2 records break the invariant one_sale, 9.00 USD at risk",
      facts: [
        { label: "At risk", value: "9.00 USD" },
        { label: "For example", value: "order order-1, order order-2" },
        { label: "Noticed", value: expect.any(String) },
        { label: "Acknowledge", value: "node src/bin/tallyhook.js alerts ack 1" },
      ],
    });
    await db("reconcile.findings").update({ state: "healed" });
    expect(await end(outcome(2))).toEqual([]);
  });

  test("what cannot be described, while all else is told; it ends with the next run that can", async () => {
    await refuseAlerts(db, "identity:one_sale");
    await finding({ identity: "double_order", evidence: { mode: "enforce" } });
    await finding({ identity: "one_sale", evidence: { mode: "enforce" }, object_id: "order-2" });
    expect(await end(outcome(1, { left: { mismatch: 1 } }))).toEqual([
      "drift:1 error open",
      "identity:double_order critical open",
      "undescribed:identities:identity:one_sale error open",
    ]);
    await acceptAlerts(db);
    expect(await end(outcome(2))).toEqual(["identity:double_order critical open", "identity:one_sale critical open"]);
  });

  test("what is wrong with the endpoint, and again when it comes back", async () => {
    const key = "endpoint:disabled:we_1";
    await finding({
      key,
      class: "endpoint",
      evidence: { says: "the endpoint we_1 is disabled", remedy: "enable it" },
    });
    expect(await end(outcome(1))).toEqual([`${key} critical open`]);
    await db("reconcile.findings").update({ state: "healed" });
    expect(await end(outcome(2))).toEqual([]);
    await db("reconcile.findings").update({ state: "reopened" });
    expect(await end(outcome(3))).toEqual([`${key} critical open`]);
    const occurrences = await db("alerts.alerts").where({ key }).orderBy("occurrence").pluck("occurrence");
    expect(occurrences).toEqual([1, 2]);
  });
});
