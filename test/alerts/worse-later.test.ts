import type { Knex } from "knex";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { acknowledgeAlert } from "../../src/parts/alerts/escalation.ts";
import type { AlertMessage } from "../../src/parts/alerts/message.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { emptyAll } from "../worker/worker-stand.ts";
import { deliver, messagesOf } from "./timeline-stand.ts";
import { declined, event, standingClock, sweep } from "./sweep-stand.ts";
import { settingsOf, testAlertContext } from "./test-alert-context.ts";

const database = useTestDatabase();
let db: Knex;
beforeAll(() => {
  ({ db } = database);
});
beforeEach(() => emptyAll(db));

const key = "dunning:subscription-9:2";
const lost = {
  ...declined,
  attempt_count: 4,
  next_retry_at: null,
  updated_at: "2025-03-08T12:00:00.000Z",
};

async function take(clock: { now(): Date }): Promise<void> {
  const row = await db("alerts.alerts").where({ key }).first<{ id: string }>("id");
  const taken = { id: Number(row.id), by: "ada", note: null };
  expect(await acknowledgeAlert({ db, clock }, taken)).toBe("acknowledged");
}

/** Titles of what the day's lists named so far. */
async function listed(): Promise<string[]> {
  const lists = await db("alerts.outbox").whereNull("alert_id").pluck<AlertMessage[]>("message");
  return lists.flatMap(({ items = [] }) => items.map(({ title }) => title));
}

test("a renewal that somebody has taken, and that is lost later, stands on the day's list", async () => {
  const clock = standingClock(new Date().toISOString());
  const alertContext = testAlertContext({ clock });
  await deliver(db, alertContext, [[event("order.failed", declined)]]);
  await take(clock);
  await deliver(db, alertContext, [[event("order.failed", lost, lost.updated_at)]]);
  clock.advanceHours(25);
  await sweep(db, alertContext);
  expect(await listed()).toEqual(["LOST 10.00 USD renewal: 4 attempts declined. Collect or cancel"]);
  clock.advanceHours(24);
  await sweep(db, alertContext);
  expect(await listed()).toHaveLength(1);
});

test("who takes what is on the list already takes it off", async () => {
  const clock = standingClock(new Date().toISOString());
  const alertContext = testAlertContext({ clock });
  await deliver(db, alertContext, [[event("order.failed", declined)], [event("order.failed", lost, lost.updated_at)]]);
  await take(clock);
  clock.advanceHours(25);
  await sweep(db, alertContext);
  expect(await listed()).toEqual([]);
});

test("what has become urgent escalates by the time of its urgent message, not of an older one", async () => {
  const clock = standingClock(new Date().toISOString());
  const settings = settingsOf({
    channels: { log: { kind: "stdout" }, boss: { kind: "stdout" } },
    escalation: [{ afterMinutes: 30, severities: ["critical"], channels: ["boss"] }],
  });
  const alertContext = testAlertContext({ settings, clock });
  await deliver(db, alertContext, [[event("order.failed", declined)]]);
  await db.raw("update alerts.outbox set due_at = due_at - interval '5 hours'");
  await db.raw("update alerts.alerts set created_at = created_at - interval '5 hours'");
  const stolen = {
    ...declined,
    attempt_count: 2,
    failure_code: "lost_stolen_card",
    updated_at: "2025-03-02T12:00:00.000Z",
  };
  await deliver(db, alertContext, [[event("order.failed", stolen, stolen.updated_at)]]);
  await sweep(db, alertContext);
  expect(await messagesOf(db, key)).toEqual(["trigger attempt:1", "trigger attempt:2"]);
  expect(await messagesOf(db, key, "boss")).toEqual([]);
  clock.advanceHours(0.6);
  await sweep(db, alertContext);
  expect(await messagesOf(db, key, "boss")).toEqual(["trigger escalated:1"]);
});

test("what waits in quiet hours is overtaken only where the later stage is told", async () => {
  const clock = standingClock("2025-03-01T23:10:00.000Z");
  const settings = settingsOf({
    channels: { log: { kind: "stdout" }, support: { kind: "stdout" }, finance: { kind: "stdout" } },
    quietHours: { from: "22:00", to: "07:00" },
    rules: {
      dunning_renewal: { channels: ["support", "log"] },
      dunning_final: { channels: ["finance", "log"], severity: "critical" },
    },
  });
  // What waits is due by this machine's clock.
  await clockOfDatabase(clock);
  const alertContext = testAlertContext({ settings, clock });
  await deliver(db, alertContext, [[event("order.failed", declined)]]);
  await deliver(db, alertContext, [[event("order.failed", lost, lost.updated_at)]]);
  const told = async (channel: string) => messagesOf(db, key, channel);
  expect(await told("log")).toEqual(["trigger final"]);
  expect(await told("finance")).toEqual(["trigger final"]);
  expect(await told("support")).toEqual(["trigger attempt:1"]);
});

/** Sets the clock to the next 23:10, so that the end of quiet hours is ahead for the database as well. */
async function clockOfDatabase(clock: { set(time: string): void }): Promise<void> {
  const { rows } = await db.raw<{ rows: { day: string }[] }>(
    "select to_char(now() at time zone 'UTC', 'YYYY-MM-DD') as day",
  );
  clock.set(`${rows[0]?.day}T23:10:00.000Z`);
}
