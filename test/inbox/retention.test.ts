import { beforeEach, describe, expect, test } from "vitest";
import { eventStates } from "../../src/core/inbox/claim.ts";
import { findOverdue } from "../../src/core/inbox/backlog.ts";
import { countPrunable, pruneEvents, replayEvents, rewriteBodies } from "../../src/core/inbox/retention.ts";
import { untilWaiting } from "../support/until-waiting.ts";
import { emptyInbox, progressOf, storeRow } from "./stored-events.ts";
import { useTestDatabase } from "../support/use-database.ts";

const daySeconds = 86_400;
const database = useTestDatabase();
beforeEach(() => emptyInbox(database.db));

const withBytes = async (): Promise<number[]> =>
  (await database.db("inbox.receipts").whereNotNull("raw").orderBy("seq").pluck<string[]>("seq")).map(Number);

describe("pruning", () => {
  test("empties what is applied, stale or ignored, and never what is received, failed or dead", async () => {
    const seqs = new Map<string, number>();
    for (const state of eventStates) {
      seqs.set(state, await storeRow(database.db, { state, receivedAgoSeconds: 91 * daySeconds }));
    }
    expect(await countPrunable(database.db, 90)).toBe(3);
    expect(await pruneEvents(database.db, { days: 90, limit: 100 })).toBe(3);
    expect(await withBytes()).toEqual(["received", "failed", "dead"].map((state) => seqs.get(state)));
    expect(await countPrunable(database.db, 90)).toBe(0);
    expect(await pruneEvents(database.db, { days: 90, limit: 100 })).toBe(0);
  });

  test("keeps the row, its id and its hash, so that a repeat is still known", async () => {
    const seq = await storeRow(database.db, { state: "applied", receivedAgoSeconds: daySeconds });
    const before = await database.db("inbox.events").where({ seq }).first();
    await pruneEvents(database.db, { days: 0, limit: 100 });
    expect(await database.db("inbox.events").where({ seq }).first()).toEqual({
      ...before,
      raw: null,
    });
  });

  test("touches nothing that is younger than asked for", async () => {
    const young = await storeRow(database.db, {
      state: "applied",
      receivedAgoSeconds: 90 * daySeconds - 60,
    });
    await storeRow(database.db, { state: "applied", receivedAgoSeconds: 90 * daySeconds + 60 });
    expect(await pruneEvents(database.db, { days: 90, limit: 100 })).toBe(1);
    expect(await withBytes()).toEqual([young]);
  });

  test("goes in steps, the oldest first", async () => {
    const seqs: number[] = [];
    for (let n = 0; n < 5; n++) {
      seqs.push(await storeRow(database.db, { state: "stale", receivedAgoSeconds: daySeconds }));
    }
    expect(await pruneEvents(database.db, { days: 0, limit: 2 })).toBe(2);
    expect(await withBytes()).toEqual(seqs.slice(2));
    expect(await pruneEvents(database.db, { days: 0, limit: 2 })).toBe(2);
    expect(await pruneEvents(database.db, { days: 0, limit: 2 })).toBe(1);
  });
});

describe("pruning and replaying at the same moment", () => {
  const outcome = async (seq: number) => {
    const { state } = await progressOf(database.db, seq);
    return { state, hasBytes: (await withBytes()).includes(seq) };
  };

  test("a replay under way keeps its events' bytes", async () => {
    const { db } = database;
    const seq = await storeRow(db, { state: "applied", receivedAgoSeconds: daySeconds });
    const replay = await db.transaction();
    expect(await replayEvents(replay, [seq])).toEqual([seq]);
    expect(await pruneEvents(db, { days: 0, limit: 100 })).toBe(0);
    await replay.commit();
    expect(await outcome(seq)).toEqual({ state: "received", hasBytes: true });
  });

  test("a replay that meets a prune waits for it, and leaves alone what has no bytes any more", async () => {
    const { db } = database;
    const seq = await storeRow(db, { state: "applied", receivedAgoSeconds: daySeconds });
    const prune = await db.transaction();
    expect(await pruneEvents(prune, { days: 0, limit: 100 })).toBe(1);
    const replayed = replayEvents(db, [seq]);
    await Promise.race([untilWaiting(db), replayed]);
    await prune.commit();
    expect(await replayed).toEqual([]);
    expect(await outcome(seq)).toEqual({ state: "applied", hasBytes: false });
  });
});

test("an event that is erased before it was applied waits for nobody", async () => {
  const broken = { raw: Buffer.from('{"id": cus-1'), receivedAgoSeconds: daySeconds };
  const waiting = [
    await storeRow(database.db, broken),
    await storeRow(database.db, { ...broken, state: "failed", dueInSeconds: -1, attempts: 3 }),
  ];
  const applied = await storeRow(database.db, { ...broken, state: "applied" });
  const search = { customerId: "cus-1", objects: [], contacts: [] };
  expect(await rewriteBodies(database.db, search, () => null)).toBe(3);
  for (const seq of waiting) {
    expect(await progressOf(database.db, seq)).toMatchObject({
      state: "dead",
      reason: "body: erased before it could be read",
    });
  }
  expect(await progressOf(database.db, applied)).toMatchObject({ state: "applied" });
  expect(await findOverdue(database.db)).toEqual({ isLate: false, due: [] });
});

describe("replaying", () => {
  test.each(eventStates)("puts an event that is %s back to the start", async (state) => {
    const seq = await storeRow(database.db, {
      state,
      attempts: 7,
      dueInSeconds: 60,
      reason: "why",
    });
    await database.db("inbox.progress").update({ settled_at: database.db.fn.now() });
    expect(await replayEvents(database.db, [seq])).toEqual([seq]);
    expect(await progressOf(database.db, seq)).toMatchObject({
      state: "received",
      attempts: 0,
      next_attempt_at: null,
      reason: null,
      settled_at: null,
    });
  });

  test("leaves events alone whose bytes are gone, and knows none that are not there", async () => {
    const kept = await storeRow(database.db, { state: "applied" });
    const pruned = await storeRow(database.db, { state: "applied", raw: null });
    expect(await replayEvents(database.db, [pruned, kept, 999_999_999])).toEqual([kept]);
    expect(await progressOf(database.db, pruned)).toMatchObject({ state: "applied" });
    expect(await replayEvents(database.db, [])).toEqual([]);
  });
});
