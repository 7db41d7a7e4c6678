import { beforeEach, expect, test } from "vitest";
import { claimEvents } from "../../src/core/inbox/claim.ts";
import { findOverdue } from "../../src/core/inbox/backlog.ts";
import { replayEvents } from "../../src/core/inbox/retention.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { emptyInbox, progressOf, storeRow } from "./stored-events.ts";

const database = useTestDatabase();
beforeEach(() => emptyInbox(database.db));

const nothing = { isLate: false, due: [] };

test("finds what has been received for too long, and nothing that is new", async () => {
  await storeRow(database.db, { receivedAgoSeconds: 4 });
  expect(await findOverdue(database.db)).toEqual(nothing);
  await emptyInbox(database.db);
  await storeRow(database.db, { receivedAgoSeconds: 6 });
  await storeRow(database.db, { receivedAgoSeconds: 4 });
  expect(await findOverdue(database.db)).toEqual({ isLate: true, due: [] });
});

test("finds what a replay put back, however long ago it was first applied", async () => {
  const seq = await storeRow(database.db, { state: "applied", receivedAgoSeconds: 86_400 });
  expect(await findOverdue(database.db)).toEqual(nothing);
  await replayEvents(database.db, [seq]);
  expect(await findOverdue(database.db)).toEqual({ isLate: true, due: [] });
});

test("finds what failed and is due, the longest due first, and nothing that waits for its time", async () => {
  const due = await storeRow(database.db, { state: "failed", dueInSeconds: -1, attempts: 3 });
  const longDue = await storeRow(database.db, { state: "failed", dueInSeconds: -9 });
  await storeRow(database.db, { state: "failed", dueInSeconds: 60, receivedAgoSeconds: 900 });
  expect(await findOverdue(database.db)).toEqual({ isLate: false, due: [longDue, due] });
  expect(await progressOf(database.db, due)).toMatchObject({ state: "failed", attempts: 3 });
  const limits = { lateAfterSeconds: 5, maxDue: 1 };
  expect(await findOverdue(database.db, limits)).toEqual({ isLate: false, due: [longDue] });
});

test.each(["applied", "stale", "ignored", "dead"] as const)("never finds an event that is %s", async (state) => {
  await storeRow(database.db, { state, receivedAgoSeconds: 900, dueInSeconds: -900 });
  expect(await findOverdue(database.db)).toEqual(nothing);
});

test("does not wait for rows that a worker holds", { timeout: 20_000 }, async () => {
  const held = await storeRow(database.db, { receivedAgoSeconds: 6 });
  const worker = await database.db.transaction();
  try {
    await claimEvents(worker, [held], { bytes: 1_000 });
    expect(await findOverdue(database.db)).toEqual({ isLate: true, due: [] });
  } finally {
    await worker.rollback();
  }
});
