import { afterEach, beforeEach, expect, test } from "vitest";
import { defineHandler } from "../../src/dispatch/define-handler.ts";
import {
  pauseHandler,
  readHandlers,
  readOpenRuns,
  resumeHandler,
  retryRuns,
  skipRun,
} from "../../src/dispatch/manage-handlers.ts";
import { eventually } from "../support/eventually.ts";
import { useTestDatabase } from "../support/use-database.ts";
import {
  type TestDispatch,
  applyAs,
  emptyDispatch,
  openDispatch,
  orderAt,
  untilHandled,
  untilRegistered,
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

test("a paused handler begins nothing, and loses nothing", async () => {
  const { db } = database;
  isBroken = false;
  expect(await pauseHandler(db, "receipts", "the mail server moves")).toBe(true);
  // What was planned before it saw the pause is over with this one.
  await applyAs(db, "event:1", orderAt("order-1", 1));
  await applyAs(db, "event:2", orderAt("order-1", 2));
  expect(await readHandlers(db)).toMatchObject([
    { paused_by: "person", pause_reason: "the mail server moves" },
  ]);
  const begun = dispatch.sinceProgressMs();
  await eventually("it has looked twice", () => dispatch.sinceProgressMs() < begun);
  expect(seen).toEqual([]);
  expect(await resumeHandler(db, "receipts")).toBe(true);
  await untilHandled(db);
  expect(seen).toEqual(["order-1 order.created", "order-1 order.updated"]);
  expect(await pauseHandler(db, "unknown", "why")).toBe(false);
  expect(await resumeHandler(db, "unknown")).toBe(false);
});
