import { beforeEach, describe, expect, test } from "vitest";
import type { Begun } from "../../../src/parts/alerts/condition.ts";
import {
  type HandlerState,
  handlerBehind,
  handlerDead,
  handlerPaused,
} from "../../../src/parts/alerts/rules/handlers.ts";
import { contextOf } from "../../../src/parts/alerts/run-watch.ts";
import { readHandlersHealth } from "../../../src/parts/delivery/dispatch/handler-health.ts";
import { pauseHandler, resumeHandler, skipRun } from "../../../src/parts/delivery/dispatch/manage-handlers.ts";
import { handlerOf } from "../../../src/parts/delivery/dispatch/feed-place.ts";
import { destinationNamed } from "../../../src/parts/delivery/forward/destination-name.ts";
import { pauseAfterRefusal } from "../../../src/parts/delivery/dispatch/runs.ts";
import { storeRow } from "../../inbox/stored-events.ts";
import { storeRun } from "../../dispatch/stored-runs.ts";
import { storeChange } from "../../feed/stored-changes.ts";
import { useTestDatabase } from "../../support/use-database.ts";
import { standingClock, sweep, unresolved } from "../sweep-stand.ts";
import { emptyAlerts, settingsOf, testAlertContext } from "../test-alert-context.ts";
import { registerHandler } from "../../dispatch/dispatch-stand.ts";
import { emptyTables } from "../../support/empty-tables.ts";

const database = useTestDatabase();
beforeEach(async () => {
  await emptyAlerts(database.db);
  await emptyTables(database.db, [
    "feed.changes",
    "feed.consumers",
    "dispatch.handlers",
    "dispatch.runs",
    "dispatch.counts",
  ]);
  await registerHandler(database.db, { name: "receipts", from: "now" });
});

const deadOrder = {
  seq: 1,
  kind: "order.paid",
  resource: "order",
  id: "1",
  error: null,
  holdsUp: 0,
};

/** An hour between sweeps is no gap here. */
const settings = settingsOf({ rules: { silence_worker: { afterMinutes: 120 } } });

function watching() {
  const clock = standingClock("2026-11-01T12:00:00Z");
  const alertContext = testAlertContext({ settings, clock, serviceClock: clock });
  const sweepAfter = async (minutes: number): Promise<string[]> => {
    clock.advanceHours(minutes / 60);
    await sweep(database.db, alertContext, {
      questions: { handlersHealth: readHandlersHealth, handlerOf, destinationOf: destinationNamed },
    });
    const alerts = await unresolved(database.db);
    return alerts.filter((alert) => /^(handler|feed-consumer)/.test(alert));
  };
  return { clock, sweepAfter };
}

describe("dead changes", () => {
  const open = "handler-dead:receipts error open";

  test("are one alert for the handler, until none is left", async () => {
    const { db } = database;
    const { sweepAfter } = watching();
    await storeRun(db, { seq: 1, id: "order-1", state: "dead", error: "TypeError" });
    await storeRun(db, { seq: 2, id: "order-1", isFirst: false });
    await storeRun(db, { seq: 3, id: "order-2", state: "dead" });
    expect(await sweepAfter(0)).toEqual([open]);
    const [{ facts }] = await db("alerts.alerts").where({ key: "handler-dead:receipts" });
    expect(facts).toMatchObject({ handler: "receipts", seq: 1, id: "order-1" });
    await skipRun(db, "receipts", 1);
    expect(await sweepAfter(1)).toEqual([open]);
    await skipRun(db, "receipts", 3);
    expect(await sweepAfter(1)).toEqual([]);
  });

  test("are counted and dated, and what waits behind the oldest as well", async () => {
    const { db } = database;
    const failedAt = new Date("2026-11-01T10:00:00Z");
    await storeRun(db, { seq: 5, id: "order-2", state: "dead", failedAt });
    await storeRun(db, { seq: 6, id: "order-3", state: "dead", failedAt: new Date() });
    await storeRun(db, { seq: 7, id: "order-2", isFirst: false });
    await storeRun(db, { seq: 8, id: "order-2", isFirst: false });
    expect(await readHandlersHealth(db, { most: 9 })).toMatchObject([
      { name: "receipts", dead: 2, deadSince: failedAt, oldestDead: { seq: 5, holdsUp: 2 } },
    ]);
    expect(await readHandlersHealth(db, { most: 1 })).toMatchObject([{ dead: 1, oldestDead: { holdsUp: 1 } }]);
  });

  test("that are many are told as so many or more", () => {
    const oldestDead = { seq: 1, kind: "order.paid", resource: "order", id: "1", error: null };
    const state = { ...works, dead: 1_000, oldestDead: { ...oldestDead, holdsUp: 1_000 } };
    const condition = begun(handlerDead, state);
    expect(condition?.title).toMatch(/^1000 or more changes are dead for "receipts"/);
    expect(condition?.facts).toContainEqual({
      label: "Waits behind it",
      value: "1000 or more later changes",
    });
  });
});

describe("a handler that failures have paused", () => {
  const open = "handler-paused:receipts critical open";
  const failing = { paused_by: "failures", pause_reason: "It failed.", probe_at: new Date() };

  test("is one alert until it goes on, and is not told of as behind", async () => {
    const { db } = database;
    const { clock, sweepAfter } = watching();
    await sweepAfter(0);
    await db("dispatch.handlers").update({ ...failing, paused_at: clock.now() });
    await storeChange(db, { recordedAt: clock.now() });
    expect(await sweepAfter(1)).toEqual([open]);
    expect(await sweepAfter(110)).toEqual([open]);
    await db("dispatch.handlers").update({ position: 999_999_999 });
    await resumeHandler(db, "receipts");
    expect(await sweepAfter(1)).toEqual([]);
  });

  test("is a person's affair once a person has paused it", async () => {
    const { db } = database;
    const { clock, sweepAfter } = watching();
    await db("dispatch.handlers").update({ ...failing, paused_at: clock.now() });
    expect(await sweepAfter(0)).toEqual([open]);
    await pauseHandler(db, "receipts", "the mail server moves");
    expect(await sweepAfter(1)).toEqual([]);
  });
});

describe("a destination", () => {
  const crm = { name: "forward:crm" };
  beforeEach(() => registerHandler(database.db, { ...crm, from: "now" }));

  test("that answered 410 is one alert until a person resumes it, and is not told of as behind", async () => {
    const { db } = database;
    const { clock, sweepAfter } = watching();
    await sweepAfter(0);
    await db("dispatch.handlers").where({ name: "receipts" }).delete();
    await pauseAfterRefusal(db, crm.name, "crm.example.com answered 410 Gone");
    await storeChange(db, { recordedAt: clock.now() });
    expect(await sweepAfter(1)).toEqual(["handler-refused:forward:crm critical open"]);
    expect(await sweepAfter(110)).toEqual(["handler-refused:forward:crm critical open"]);
    await db("dispatch.handlers").update({ position: 999_999_999 });
    await resumeHandler(db, crm.name);
    expect(await sweepAfter(1)).toEqual([]);
  });

  test("that failures had paused before is told of again when it answers 410: nothing is tried any more", async () => {
    const { db } = database;
    const { sweepAfter } = watching();
    await db("dispatch.handlers").where(crm).update({
      paused_by: "failures",
      paused_at: db.fn.now(),
      pause_reason: "It failed.",
      probe_at: db.fn.now(),
    });
    expect(await sweepAfter(0)).toEqual(["handler-paused:forward:crm critical open"]);
    await pauseAfterRefusal(db, crm.name, "crm.example.com answered 410 Gone");
    expect(await sweepAfter(1)).toEqual(["handler-refused:forward:crm critical open"]);
  });

  test("of webhooks is as old as the event that it has not looked at, whatever the feed has", async () => {
    const { db } = database;
    await db("dispatch.handlers").where(crm).update({ source: "webhooks", position: 0 });
    await storeChange(db, { recordedAt: new Date("2026-11-01T08:00:00Z") });
    const unread = async () =>
      (await readHandlersHealth(db, { most: 9 })).find(({ name }) => name === crm.name)?.unreadSince;
    expect(await unread()).toBeNull();
    const receivedAt = new Date("2026-11-01T10:00:00Z");
    const seq = await storeRow(db, { state: "received" });
    await db("inbox.receipts").where({ seq }).update({ received_at: receivedAt });
    expect(await unread(), "no worker has tried it").toBeNull();
    await db("inbox.progress").where({ seq }).update({ state: "applied" });
    expect(await unread()).toEqual(receivedAt);
    await db("dispatch.handlers").where(crm).update({ position: seq });
    expect(await unread()).toBeNull();
  });

  test.each([
    ["dead", handlerDead, { dead: 1, oldestDead: deadOrder }],
    ["paused by failures", handlerPaused, { pausedBy: "failures" }],
    ["refused", handlerPaused, { pausedBy: "subscriber" }],
    ["behind", handlerBehind, { unreadSince: new Date("2026-11-01T09:00:00Z") }],
  ] as const)("is called one, with its own commands: %s", (_what, watch, is) => {
    const pausedAt = new Date("2026-11-01T09:00:00Z");
    const condition = begun(watch, { ...works, ...crm, pausedAt, ...is });
    expect(condition?.title).toMatch(/the destination "crm"/i);
    const commands = condition?.facts.flatMap(({ value }) => /^node .*/.exec(value) ?? []) ?? [];
    expect(commands.length).toBeGreaterThan(0);
    for (const each of commands) expect(each).toMatch(/^node src\/bin\/tallyhook\.js forward [a-z]+ crm\b/);
    expect(JSON.stringify(condition?.advice)).not.toMatch(/handler|\bits code\b/);
  });
});

describe("a handler that is behind", () => {
  const open = "handler-behind:receipts error open";

  test("is told of when it has not looked at a change for more than an hour, and not as a consumer", async () => {
    const { db } = database;
    const { clock, sweepAfter } = watching();
    await sweepAfter(0);
    await storeChange(db, { recordedAt: clock.now() });
    expect(await sweepAfter(60)).toEqual([]);
    expect(await sweepAfter(1)).toEqual([open]);
    await db("dispatch.handlers").update({ position: 999_999_999 });
    expect(await sweepAfter(1)).toEqual([]);
  });

  test("is told of when nobody begins what was due, and not while it waits for its next attempt", async () => {
    const { db } = database;
    const { clock, sweepAfter } = watching();
    await sweepAfter(0);
    const inTwoHours = new Date(clock.now().getTime() + 2 * 3_600_000);
    await storeRun(db, { seq: 1, id: "order-1", dueAt: inTwoHours });
    expect(await sweepAfter(119)).toEqual([]);
    expect(await sweepAfter(60)).toEqual([]);
    expect(await sweepAfter(2)).toEqual([open]);
  });

  test("has ten minutes to catch up after a downtime of everything", async () => {
    const { db } = database;
    const { clock, sweepAfter } = watching();
    await storeChange(db, { recordedAt: clock.now() });
    clock.advanceHours(5);
    expect(await sweepAfter(0)).toEqual([]);
    expect(await sweepAfter(9)).toEqual([]);
    expect(await sweepAfter(2)).toEqual([open]);
  });

  test("for a person's pause says so, with the reason and how to resume", () => {
    const paused = { pausedBy: "person", pausedAt: new Date("2026-11-01T09:00:00Z") } as const;
    const unreadSince = new Date("2026-11-01T09:30:00Z");
    const state = { ...works, ...paused, pauseReason: "the shop\u001b[2J moves", unreadSince };
    const condition = begun(handlerBehind, state);
    expect(condition?.title).toContain("a person paused it");
    const values = condition?.facts.map(({ value }) => value);
    expect(values).toContain("the shop\ufffd[2J moves");
    expect(values).toContain("node src/bin/tallyhook.js handlers resume receipts");
  });
});

const works: HandlerState = {
  name: "receipts",
  source: "changes",
  pausedBy: null,
  pausedAt: null,
  pauseReason: null,
  dead: 0,
  deadSince: null,
  oldestDead: null,
  unreadSince: null,
  nextDueAt: null,
};

/** What a watch says of one handler at noon. */
function begun(watch: typeof handlerDead | typeof handlerPaused | typeof handlerBehind, state: HandlerState) {
  const clock = standingClock("2026-11-01T12:00:00Z");
  const context = contextOf(testAlertContext({ settings, clock }), handlerBehind);
  const [first]: (Begun | undefined)[] = watch.begins({ handlers: [state], destinationOf: destinationNamed }, context);
  return first;
}
