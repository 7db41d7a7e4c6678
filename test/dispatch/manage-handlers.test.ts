import { afterEach, beforeEach, expect, test } from "vitest";
import { defineHandler } from "../../src/parts/delivery/dispatch/define-handler.ts";
import {
  changeBefore,
  pauseHandler,
  readHandlers,
  readRemains,
  removeHandler,
  resumeHandler,
  retryRuns,
  skipRun,
} from "../../src/parts/delivery/dispatch/manage-handlers.ts";
import { readOpenRuns } from "../../src/parts/delivery/dispatch/open-runs.ts";
import { removeDone } from "../../src/parts/delivery/dispatch/runs.ts";
import { createConsumer, listConsumers } from "../../src/parts/delivery/consumers.ts";
import { eventually } from "../support/eventually.ts";
import { storeRun } from "./stored-runs.ts";
import { useTestDatabase } from "../support/use-database.ts";
import {
  type TestDispatch,
  applyAs,
  emptyDispatch,
  openDispatch,
  orderAt,
  untilHandled,
  untilRegistered,
  registerHandler,
} from "./dispatch-stand.ts";

const database = useTestDatabase();
let dispatch: TestDispatch;
let isBroken: boolean;
let seen: string[];

beforeEach(async () => {
  await emptyDispatch(database.db);
  isBroken = true;
  seen = [];
  const handler = defineHandler({
    name: "receipts",
    on: ["order.created", "order.updated"],
    attempts: 1,
    run({ order, change }) {
      if (isBroken) throw new TypeError("broken");
      seen.push(`${order.id} ${change.kind}`);
    },
  });
  dispatch = openDispatch(database.url, [handler]);
  await untilRegistered(database.db, "receipts");
});
afterEach(() => dispatch.close());

/** Two changes of an order, the first of them dead. Returns its number. */
async function deadChange(): Promise<number> {
  const { db } = database;
  await applyAs(db, "event:1", orderAt("order-1", 1));
  await applyAs(db, "event:2", orderAt("order-1", 2));
  await untilHandled(db, { dead: 2 });
  return eventually("it is dead", async () => {
    const [first] = await readOpenRuns(db, { handler: "receipts", limit: 9 });
    return first?.state === "dead" ? first.seq : null;
  });
}

test("a dead change is listed with its error and with what it holds up", async () => {
  const seq = await deadChange();
  expect(await readOpenRuns(database.db, { handler: "receipts", limit: 9 })).toMatchObject([
    { seq, kind: "order.created", state: "dead", error: "TypeError", attempts: 1, holds_up: 1 },
  ]);
  expect(await readHandlers(database.db, "receipts")).toMatchObject([
    { name: "receipts", paused_by: null, waiting: 1, dead: 1, done: 0, failed: 1, behind: 0 },
  ]);
});

test("a retry gives a dead change its attempts again, and then the later ones of its object follow", async () => {
  await deadChange();
  isBroken = false;
  expect(await retryRuns(database.db, "receipts", { state: "dead" })).toBe(1);
  await untilHandled(database.db);
  expect(seen).toEqual(["order-1 order.created", "order-1 order.updated"]);
});

test("a skip gives up one change, and the later ones of its object follow", async () => {
  const seq = await deadChange();
  isBroken = false;
  expect(await skipRun(database.db, "receipts", seq)).toBe(true);
  await untilHandled(database.db);
  expect(seen).toEqual(["order-1 order.updated"]);
  expect(await skipRun(database.db, "receipts", seq)).toBe(false);
  expect(await readHandlers(database.db)).toMatchObject([{ done: 1 }]);
});

test("a change that runs just now can neither be skipped nor retried", async () => {
  const seq = await deadChange();
  const { db } = database;
  await db("dispatch.runs")
    .where({ seq })
    .update({ claimed_until: db.raw("now() + interval '1 hour'") });
  expect(await skipRun(db, "receipts", seq)).toBe(false);
  expect(await retryRuns(db, "receipts", { seq })).toBe(0);
});

test("a change that is skipped while the one before it is being marked done leaves the next its turn", async () => {
  const { db } = database;
  await dispatch.close();
  await storeRun(db, { seq: 4, id: "order-1" });
  await storeRun(db, { seq: 6, id: "order-1", isFirst: false });
  await storeRun(db, { seq: 8, id: "order-1", isFirst: false });
  const skipping = await db.transaction();
  expect(await skipRun(skipping, "receipts", 6)).toBe(true);
  const marked = removeDone(db, "receipts", [{ seq: 4, token: 0 }]);
  await eventually("it waits for the skip", async () => {
    const { rows } = await db.raw<{ rows: [{ waits: boolean }] }>(
      `select exists (select from pg_stat_activity
                      where datname = current_database() and wait_event_type = 'Lock') as waits`,
    );
    return rows[0].waits;
  });
  await skipping.commit();
  expect(await marked).toEqual(new Set([4]));
  expect(await db("dispatch.runs").select("seq", "is_first")).toEqual([{ seq: "8", is_first: true }]);
});

test("a paused handler begins nothing, and loses nothing", async () => {
  const { db } = database;
  isBroken = false;
  expect(await pauseHandler(db, "receipts", "the mail server moves")).toBe(true);
  // What was planned before it saw the pause is over with this one.
  await applyAs(db, "event:1", orderAt("order-1", 1));
  await applyAs(db, "event:2", orderAt("order-1", 2));
  expect(await readHandlers(db)).toMatchObject([{ paused_by: "person", pause_reason: "the mail server moves" }]);
  const begun = dispatch.sinceProgressMs();
  await eventually("it has looked twice", () => dispatch.sinceProgressMs() < begun);
  expect(seen).toEqual([]);
  expect(await resumeHandler(db, "receipts")).toBe(true);
  await untilHandled(db);
  expect(seen).toEqual(["order-1 order.created", "order-1 order.updated"]);
  expect(await pauseHandler(db, "unknown", "why")).toBe(false);
  expect(await resumeHandler(db, "unknown")).toBe(false);
});

test("a change waits for the oldest one of its object, and for no other", async () => {
  const { db } = database;
  await dispatch.close();
  await storeRun(db, { seq: 4, id: "order-1" });
  await storeRun(db, { seq: 5, id: "order-2" });
  await storeRun(db, { seq: 6, id: "order-1", isFirst: false });
  await storeRun(db, { seq: 8, id: "order-1", isFirst: false });
  const before = (seq: number) => changeBefore(db, "receipts", { seq, resource: "order", id: "order-1" });
  expect([await before(4), await before(8)]).toEqual([null, 4]);
});

test("the dead are listed first, then what failed, then the oldest", async () => {
  const { db } = database;
  await dispatch.close();
  await storeRun(db, { seq: 1, id: "order-1" });
  await storeRun(db, { seq: 2, id: "order-2" });
  await storeRun(db, { seq: 3, id: "order-3", failedAt: new Date() });
  await storeRun(db, { seq: 4, id: "order-4", state: "dead" });
  const listed = async (limit: number) =>
    (await readOpenRuns(db, { handler: "receipts", limit })).map(({ seq }) => seq);
  expect(await listed(9)).toEqual([4, 3, 1, 2]);
  expect(await listed(2)).toEqual([4, 3]);
});

test("a handler that is removed leaves nothing, for itself alone, and starts over at the next start", async () => {
  const { db } = database;
  await deadChange();
  await registerHandler(db, { name: "mails", from: "beginning" });
  await createConsumer(db, "shop", "now");
  expect(await readRemains(db, "receipts")).toEqual({ waiting: 1, dead: 1, runningUntil: null });
  await removeHandler(db, "receipts");
  expect(await readRemains(db, "receipts")).toBeNull();
  expect((await readHandlers(db)).map(({ name }) => name)).toEqual(["mails"]);
  expect((await listConsumers(db)).map(({ name }) => name)).toEqual(["handler:mails", "shop"]);
  await removeHandler(db, "receipts");
  // The process that has its code does not make it known again by itself.
  await applyAs(db, "event:3", orderAt("order-2", 1));
  const begun = dispatch.sinceProgressMs();
  await eventually("it has looked twice", () => dispatch.sinceProgressMs() < begun);
  expect(await readRemains(db, "receipts")).toBeNull();
});

test("a handler that runs a change just now is known to", async () => {
  const { db } = database;
  await dispatch.close();
  const claimedUntil = new Date(Date.now() + 60_000);
  await storeRun(db, { seq: 4, id: "order-1", claimedUntil });
  expect(await readRemains(db, "receipts")).toMatchObject({
    waiting: 1,
    runningUntil: claimedUntil,
  });
});

test("what failed to be removed whole by hand is still known, and can be removed", async () => {
  const { db } = database;
  await createConsumer(db, "handler:gone", "now");
  expect(await readRemains(db, "gone")).toEqual({ waiting: 0, dead: 0, runningUntil: null });
  await removeHandler(db, "gone");
  expect(await readRemains(db, "gone")).toBeNull();
});
