import { beforeEach, describe, expect, test } from "vitest";
import { acknowledgeAlert, escalate } from "../../src/parts/alerts/escalation.ts";
import type { AlertSeverity } from "../../src/parts/alerts/message.ts";
import { claimDue, recordOutcome } from "../../src/parts/alerts/outbox/outbox.ts";
import { sendDecisionOf } from "../../src/parts/alerts/outbox/sender.ts";
import { clear, raise } from "../../src/parts/alerts/raise-conditions.ts";
import { redactMessages } from "../../src/parts/alerts/redact-messages.ts";
import { pruneAlerts } from "../../src/parts/alerts/retention.ts";
import {
  type Silenced,
  beginSilence,
  endSilence,
  findSilence,
  listSilences,
  silencesSince,
} from "../../src/parts/alerts/silences.ts";
import { type AlertFilter, countUnresolved, findAlertByKey, listAlerts } from "../../src/parts/alerts/store.ts";
import type { Condition } from "../../src/parts/alerts/timeline.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { standingClock } from "./sweep-stand.ts";
import { emptyAlerts, settingsOf, testAlertContext } from "./test-alert-context.ts";

const database = useTestDatabase();
const alertContext = testAlertContext();

beforeEach(() => emptyAlerts(database.db));

interface Given {
  rule?: Condition["rule"];
  severity?: AlertSeverity;
  measures?: Record<string, number>;
  context?: typeof alertContext;
}

const begin = (key: string, { context = alertContext, ...given }: Given = {}) =>
  database.db.transaction((trx) =>
    raise(
      trx,
      context,
      [
        {
          key,
          rule: "handler_dead",
          severity: "error",
          title: `${key} holds`,
          advice: "",
          facts: [],
          at: new Date(),
          ...given,
        },
      ],
      "sweep",
    ),
  );
const end = (key: string) =>
  database.db.transaction((trx) =>
    clear(trx, alertContext, [{ key, end: { title: "Over", advice: "" }, at: new Date() }], "sweep"),
  );
const silence = (of: Silenced, { upTo = "error", hours = 1 }: { upTo?: AlertSeverity; hours?: number } = {}) =>
  beginSilence(database.db, { of, upTo, hours, by: "Anna", reason: null });
const unsilence = (id: number) => database.db.transaction((trx) => endSilence(trx, { id, by: "Ben" }));

/** As the sender does: what it sends of what is due, as `key stage`; what it drops in brackets. */
async function sent(): Promise<string[]> {
  const told: string[] = [];
  for (;;) {
    const rows = await claimDue(database.db, "log", { limit: 10, leaseMs: 60_000 });
    if (rows.length === 0) return told;
    for (const row of rows) {
      const what = `${row.message.dedupKey.split("#")[0]} ${row.stage}`;
      const decision = sendDecisionOf(row);
      told.push(decision.send ? what : `(${what})`);
      await recordOutcome(
        database.db,
        row.id,
        decision.send ? { state: "sent" } : { state: "dropped", reason: decision.reason, maybeSent: false },
      );
    }
  }
}

/** As if the silences had begun, and would end, so much earlier. */
async function letPass(hours: number): Promise<void> {
  await database.db.raw(
    `update alerts.silences set began_at = began_at - make_interval(hours => :hours),
       ends_at = ends_at - make_interval(hours => :hours)`,
    { hours },
  );
  await database.db.raw(
    `update alerts.outbox set due_at = due_at - make_interval(hours => :hours) where state = 'pending'`,
    { hours },
  );
}

const listed = async (filter: Omit<AlertFilter, "limit"> = {}): Promise<string[]> =>
  (await listAlerts(database.db, { ...filter, limit: 9 })).map(({ key }) => key);

describe("a silence", () => {
  test.each([
    ["of a key holds that alert alone", { key: "a" }, ["b opened"]],
    ["of a rule holds all of its alerts", { rule: "handler_dead" }, []],
    ["of another rule holds none", { rule: "decline" }, ["a opened", "b opened"]],
  ])("%s", async (_, of, told) => {
    await silence(of);
    await begin("a");
    await begin("b");
    expect(await sent()).toEqual(told);
  });

  test("holds what waited to be sent before it began", async () => {
    await begin("a");
    await silence({ key: "a" });
    expect(await sent()).toEqual([]);
  });

  test("ends by its time, and what still holds is sent then", async () => {
    await silence({ rule: "handler_dead" }, { hours: 2 });
    await begin("a");
    await begin("b");
    expect(await sent()).toEqual([]);
    await letPass(1);
    expect(await sent()).toEqual([]);
    await end("b");
    await letPass(1);
    expect(await sent()).toEqual(["a opened"]);
    expect(await listSilences(database.db, { limit: 9 })).toEqual([]);
  });

  test("that ends early lets go what it held, and says who ended it", async () => {
    const id = await silence({ key: "a" });
    await begin("a");
    expect(await sent()).toEqual([]);
    expect(await unsilence(id)).toBe("ended");
    expect(await sent()).toEqual(["a opened"]);
    expect(await findSilence(database.db, id)).toMatchObject({
      began_by: "Anna",
      ended_by: "Ben",
      is_in_force: false,
    });
    expect(await unsilence(id)).toBe("over");
    expect(await unsilence(999)).toBe("unknown");
  });

  test("that ends lets another one hold on", async () => {
    const [long, short] = [await silence({ rule: "handler_dead" }, { hours: 9 }), await silence({ key: "a" })];
    await begin("a");
    await sent();
    await letPass(1);
    expect(await sent()).toEqual([]);
    await unsilence(short);
    expect(await sent()).toEqual([]);
    await unsilence(long);
    expect(await sent()).toEqual(["a opened"]);
  });

  test("leaves only the last of what happened meanwhile to be sent", async () => {
    const id = await silence({ key: "a" });
    await begin("a", { measures: { n: 1 } });
    await sent();
    await begin("a", { measures: { n: 2 } });
    await sent();
    await begin("a", { measures: { n: 4 } });
    await sent();
    await unsilence(id);
    expect(await sent()).toEqual(["a grown:2"]);
  });

  test("lets through what is more severe than it names", async () => {
    await silence({ key: "a" }, { upTo: "error" });
    await begin("a", { measures: { n: 1 } });
    expect(await sent()).toEqual([]);
    await begin("a", { severity: "critical", measures: { n: 2 } });
    expect(await sent()).toEqual(["a grown:1"]);
  });

  test("lets the end through where people were told of the alert, and nowhere else", async () => {
    await begin("told");
    expect(await sent()).toEqual(["told opened"]);
    const id = await silence({ rule: "handler_dead" });
    await begin("untold");
    await sent();
    await end("told");
    await end("untold");
    expect(await sent()).toEqual(["told resolved"]);
    await unsilence(id);
    expect(await sent()).toEqual([]);
  });

  test("lets an acknowledgement through where people were told of the alert", async () => {
    await begin("a");
    await sent();
    await silence({ key: "a" });
    const id = (await findAlertByKey(database.db, "a")) ?? 0;
    const deps = { db: database.db, clock: alertContext.clock };
    await acknowledgeAlert(deps, { id, by: "Anna", note: null });
    expect(await sent()).toEqual(["a acknowledged"]);
  });

  test("does not keep back a message that may have arrived", async () => {
    await begin("a");
    await claimDue(database.db, "log", { limit: 9, leaseMs: 0 });
    await silence({ key: "a" });
    expect(await sent()).toEqual(["a opened"]);
  });

  test("never holds a list: it tells of other alerts than the silenced one", async () => {
    await begin("storm:dead");
    await database.db("alerts.outbox").update({ is_list: true });
    await silence({ key: "storm:dead" });
    expect(await sent()).toEqual(["storm:dead opened"]);
  });
});

describe("an alert that is silenced", () => {
  test("stays open on the list with the time, a critical one as well", async () => {
    await silence({ key: "a" }, { upTo: "critical" });
    await begin("a", { severity: "critical" });
    await begin("b", { severity: "critical" });
    const rows = await listAlerts(database.db, { limit: 9 });
    expect(rows.map(({ key, state, silenced_until: until }) => [key, state, until !== null])).toEqual([
      ["b", "open", false],
      ["a", "open", true],
    ]);
    expect(await listed({ silenced: true })).toEqual(["a"]);
    expect(await countUnresolved(database.db, { most: 100 })).toEqual([
      { severity: "critical", alerts: 2, open: 2, silenced: 1 },
    ]);
    await end("a");
    expect(await listed({ silenced: true, states: ["resolved"] })).toEqual([]);
  });

  test("does not escalate, and after the silence it has its time again", async () => {
    const settings = settingsOf({
      escalation: [{ afterMinutes: 30, severities: ["error"], channels: ["log"] }],
    });
    const clock = standingClock(new Date().toISOString());
    const context = testAlertContext({ settings, clock });
    /** The messages of escalations after a sweep. The outbox goes by the database's clock, which does not advance. */
    const escalated = async () => {
      await database.db.transaction((trx) => escalate(trx, context));
      return database.db("alerts.outbox").whereLike("stage", "escalated:%").pluck("stage");
    };
    await begin("a", { context });
    await sent();
    await silence({ key: "a" }, { hours: 2 });
    clock.advanceHours(1);
    expect(await escalated()).toEqual([]);
    clock.advanceHours(1.25);
    expect(await escalated()).toEqual([]);
    clock.advanceHours(0.5);
    expect(await escalated()).toEqual(["escalated:1"]);
  });

  test("is told of its silences since a time, by key and by rule", async () => {
    await silence({ key: "a" });
    await silence({ rule: "handler_dead" });
    await silence({ key: "b" });
    const about = { key: "a", rule: "handler_dead" };
    const found = await silencesSince(database.db, about, new Date());
    expect(found.map(({ key, rule }) => key ?? rule)).toEqual(["handler_dead", "a"]);
    const later = new Date(Date.now() + 2 * 3_600_000);
    expect(await silencesSince(database.db, about, later)).toEqual([]);
  });
});

test("alerts are listed by what they are about, and page by page", async () => {
  for (const key of ["a", "b", "c"]) await begin(key);
  await database.db("alerts.alerts").where({ key: "b" }).update({ subscription_id: "sub_1" });
  expect(await listed({ object: "sub_1" })).toEqual(["b"]);
  const before = Number((await findAlertByKey(database.db, "c")) ?? 0);
  expect(await listed({ before })).toEqual(["b", "a"]);
});

test("an erasure takes reasons that name the person out of silences", async () => {
  for (const reason of ["Jane Doe calls us", "deploy"]) {
    await beginSilence(database.db, {
      of: { rule: "decline" },
      upTo: "error",
      hours: 1,
      by: "Anna",
      reason,
    });
  }
  await database.db.transaction((trx) =>
    redactMessages(trx, { customerId: "customer-1", ids: [], seqs: [], names: ["Jane Doe"] }),
  );
  const silences = await listSilences(database.db, { all: true, limit: 9 });
  expect(silences.map(({ reason }) => reason)).toEqual(["deploy", "[redacted]"]);
});

test("silences go with the alerts of their time", async () => {
  await silence({ key: "a" });
  const { settings } = alertContext;
  const prune = (days: number) => {
    const now = new Date(Date.now() + days * 86_400_000);
    return pruneAlerts(database.db, { now, serviceNow: now, settings });
  };
  await prune(399);
  expect(await listSilences(database.db, { all: true, limit: 9 })).toHaveLength(1);
  await prune(401);
  expect(await listSilences(database.db, { all: true, limit: 9 })).toEqual([]);
});
