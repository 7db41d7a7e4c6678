import { beforeEach, expect, test } from "vitest";
import { raise } from "../../../src/parts/alerts/raise-conditions.ts";
import { noSubject } from "../../../src/parts/alerts/timeline.ts";
import { keepPosition } from "../../../src/parts/delivery/consumers.ts";
import { registerAlerts } from "../../../src/parts/alerts/cli/alerts.ts";
import { registerChanges } from "../../../src/parts/delivery/cli/changes.ts";
import { registerEvents } from "../../../src/parts/browse/events/command.ts";
import { registerFindings } from "../../../src/parts/reconcile/cli/findings.ts";
import { registerHandlers } from "../../../src/parts/delivery/handlers/command.ts";
import { readAudit } from "../../../src/app/people/audit.ts";
import { recordFindings } from "../../../src/parts/reconcile/findings/findings.ts";
import { settingsOf, testAlertContext } from "../../alerts/test-alert-context.ts";
import { emptyDispatch, registerHandler } from "../../dispatch/dispatch-stand.ts";
import { storeRun } from "../../dispatch/stored-runs.ts";
import { emptyInbox, storeRow } from "../../inbox/stored-events.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { emptyAll } from "../../worker/worker-stand.ts";
import { runCommand } from "./command-line.ts";
import { emptyTables } from "../../support/empty-tables.ts";

const database = useTestDatabase();
let [applied, alert, newest] = [0, "", 0];

const registers = [registerAlerts, registerChanges, registerEvents, registerFindings, registerHandlers];

const register: Parameters<typeof runCommand>[0] = (program, context) => {
  for (const each of registers) {
    each(program, context);
  }
};

/** Runs a command, and returns what was recorded meanwhile. */
async function recorded(...args: string[]) {
  const { error } = await runCommand(register, args, { env: { DATABASE_URL: database.url } });
  const rows = await readAudit(database.db, { limit: 100 });
  return { error, acts: rows.filter(({ id }) => id > newest) };
}

beforeEach(async () => {
  const { db } = database;
  await emptyAll(db);
  await emptyInbox(db);
  await emptyDispatch(db);
  await emptyTables(db, ["reconcile.findings"], { numbersRestart: true });
  applied = await storeRow(db, { eventId: "evt_1", state: "applied" });
  await storeRow(db, { state: "dead" });
  await storeRow(db, { state: "dead" });
  await storeRow(db, { state: "stale", receivedAgoSeconds: 91 * 86_400 });
  await db.transaction((trx) => keepPosition(trx, { name: "ledger", position: 7 }));
  await registerHandler(db, { name: "receipts", from: "now" });
  await storeRun(db, { seq: 1, id: "order-1", state: "dead" });
  await storeRun(db, { seq: 2, id: "order-2", state: "dead" });
  await recordFindings(db, { run: null, seenAt: new Date() }, [
    {
      key: "identity:one_sale:order-1",
      class: "identity",
      identity: "one_sale",
      severity: "critical",
      resource: "order",
      objectId: "order-1",
      differences: [],
      amountAtRiskMinor: null,
      currency: null,
      cause: null,
      evidence: {},
    },
  ]);
  const condition = {
    key: "dead:evt_9",
    rule: "event_dead",
    severity: "error",
    title: "something",
    advice: "",
    facts: [],
    kept: {},
    measures: {},
    subject: noSubject,
    at: new Date(),
  } as const;
  const told = testAlertContext({ settings: settingsOf({ digests: { when: "off" } }) });
  await db.transaction((trx) => raise(trx, told, [condition], "sweep"));
  alert = String((await db("alerts.alerts").where({ key: condition.key }).first("id")).id);
  await db("alerts.outbox").update({ state: "failed", attempts: 400 });
  newest = (await readAudit(db, { limit: 1 }))[0]?.id ?? 0;
});

test.each<[string, () => object]>([
  ["events replay evt_1", () => ({ action: "event.replayed", subject: { kind: "event", id: String(applied) } })],
  [
    "events replay --dead",
    () => ({
      action: "events.replayed",
      after: {
        filter: { state: "dead" },
        found: 2,
        count: 2,
        seqs: [expect.any(Number), expect.any(Number)],
      },
    }),
  ],
  [
    "findings ack 1 --note known",
    () => ({
      action: "finding.acknowledged",
      subject: { kind: "finding", id: "1" },
      before: { state: "open" },
    }),
  ],
  ["alerts ack dead:evt_9", () => ({ action: "alert.acknowledged", subject: { kind: "alert", id: alert } })],
  ["alerts resend dead:evt_9", () => ({ action: "alert.resent", subject: { kind: "alert", id: alert } })],
  ["alerts resend --channel log", () => ({ action: "alert.resent", subject: null })],
  [
    "handlers retry receipts --change 1",
    () => ({ action: "handler.retried", before: { seq: 1, state: "dead", id: "order-1" } }),
  ],
  ["handlers retry receipts --all", () => ({ action: "handler.retried", after: { runs: 2 } })],
  [
    "handlers skip receipts --change 1",
    () => ({ action: "handler.skipped", before: { seq: 1, state: "dead", id: "order-1" } }),
  ],
  [
    "handlers pause receipts --reason later",
    () => ({
      action: "handler.paused",
      subject: { kind: "handler", id: "receipts" },
      after: { pausedBy: "person" },
    }),
  ],
  ["handlers resume receipts", () => ({ action: "handler.resumed", after: { pausedBy: null } })],
  ["handlers remove receipts --yes", () => ({ action: "handler.removed", before: { waiting: 0, dead: 2 } })],
  [
    "events prune --older-than 90",
    () => ({ action: "events.pruned", subject: null, after: { olderThanDays: 90, count: 1 } }),
  ],
  [
    "changes consumers remove ledger --yes",
    () => ({
      action: "consumer.removed",
      subject: { kind: "consumer", id: "ledger" },
      before: { position: 7 },
    }),
  ],
])('"tallyhook %s" is in the record, with who did it', async (command, act) => {
  const named = await recorded(...command.split(" "), "--by", "Ann Lee");
  expect(named.error).toBeNull();
  expect(named.acts).toMatchObject([{ actor: "Ann Lee", via: "command line", ...act() }]);
});

test.each([
  "events replay evt_none",
  "findings ack 99 --note known",
  "alerts ack 999999",
  "handlers skip receipts --change 99",
  "handlers retry receipts --change 99",
  "handlers pause nobody",
  "changes consumers remove nobody --yes",
])('"tallyhook %s" does nothing, and nothing is in the record', async (command) => {
  const { error, acts } = await recorded(...command.split(" "));
  expect(error).not.toBeNull();
  expect(acts).toEqual([]);
});

test("what removes nothing is not in the record", async () => {
  for (const days of ["--older-than 90 --dry-run", "--older-than 92"]) {
    const { error, acts } = await recorded("events", "prune", ...days.split(" "));
    expect([error, acts]).toEqual([null, []]);
  }
});

test("a script that names nobody is in the record by its user", async () => {
  expect((await recorded("events", "replay", "--dead")).acts).toMatchObject([{ actor: "tester" }]);
});

test("what a person says in a note or a reason is not in the record, which nobody can erase", async () => {
  await recorded("findings", "ack", "1", "--note", "Jane Doe called");
  await recorded("handlers", "pause", "receipts", "--reason", "Jane Doe called");
  const { acts } = await recorded("alerts", "ack", alert, "--note", "Jane Doe called");
  expect(acts).toHaveLength(3);
  expect(JSON.stringify(acts)).not.toContain("Jane");
});
