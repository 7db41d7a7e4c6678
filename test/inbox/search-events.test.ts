import { beforeEach, describe, expect, test } from "vitest";
import { readBacklog } from "../../src/core/inbox/backlog.ts";
import { readLag } from "../../src/core/inbox/lag.ts";
import { eventPositionAt } from "../../src/core/inbox/read-by-number.ts";
import { decidedOnFound, findReplayable } from "../../src/core/inbox/replay-search.ts";
import { type EventSearch, newestEvents, searchEvents } from "../../src/core/inbox/search-events.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { emptyInbox, storeRow } from "./stored-events.ts";

const database = useTestDatabase();
beforeEach(() => emptyInbox(database.db));

const found = async (search: EventSearch, lookThrough?: number) => {
  const limits = { limit: 10, ...(lookThrough === undefined ? {} : { lookThrough }) };
  const { events, stoppedAt } = await searchEvents(database.db, search, limits);
  return { seqs: events.map(({ seq }) => seq), stoppedAt };
};

const several = async (given: Parameters<typeof storeRow>[1][]): Promise<number[]> => {
  const seqs: number[] = [];
  for (const each of given) seqs.push(await storeRow(database.db, each));
  return seqs;
};

describe("a search for events", () => {
  test("finds the same by a copied type and time as by those of the receipt", async () => {
    const [copied, ofReceipt] = await several([
      { type: "order.paid", state: "applied" },
      { type: "order.paid", state: "applied" },
    ]);
    await database.db.raw(
      `update inbox.progress p set event_type = r.type, arrived_at = r.received_at
       from inbox.receipts r where r.seq = p.seq and p.seq = ?`,
      [copied!],
    );
    const receivedFrom = new Date(Date.now() - 60_000);
    expect((await found({ type: "order.paid", receivedFrom })).seqs).toEqual([ofReceipt, copied]);
  });

  test("says where it stopped, and goes on from there", async () => {
    const seqs = await several([{ state: "ignored" }, ...Array(5).fill({ state: "applied" })]);
    const first = await found({ state: "ignored" }, 3);
    expect(first).toEqual({ seqs: [], stoppedAt: seqs[3] });
    const second = await found({ state: "ignored", before: first.stoppedAt ?? 0 }, 3);
    expect(second).toEqual({ seqs: [seqs[0]], stoppedAt: seqs[0] });
    expect(await found({ state: "ignored", before: seqs[0]! }, 3)).toEqual({
      seqs: [],
      stoppedAt: null,
    });
  });

  test("goes on by itself for a command until it has so many, or all", async () => {
    const [a, , b, , c] = await several([{ type: "x" }, {}, { type: "x" }, {}, { type: "x" }]);
    const seqs = async (limit: number) =>
      (await newestEvents(database.db, { type: "x" }, { limit, lookThrough: 2 })).map(({ seq }) => seq);
    expect([await seqs(9), await seqs(3), await seqs(2)]).toEqual([
      [c, b, a],
      [c, b, a],
      [c, b],
    ]);
  });

  test("finds both ends of a span of time exactly", async () => {
    const seqs = await several([600, 400, 200, 0].map((ago) => ({ receivedAgoSeconds: ago })));
    const ago = (seconds: number) => new Date(Date.now() - seconds * 1_000);
    expect((await found({ receivedFrom: ago(500), receivedUntil: ago(100) })).seqs).toEqual([seqs[2], seqs[1]]);
  });

  test("for a replay is decided on the events that it finds", async () => {
    await several([{ state: "dead" }, { state: "dead" }]);
    const before = await findReplayable(database.db, { state: "dead" });
    expect(before).toMatchObject({ isMore: false, seqs: { length: 2 } });
    expect(await findReplayable(database.db, { state: "dead" })).toEqual(before);
    await several([{ state: "dead" }]);
    const after = await findReplayable(database.db, { state: "dead" });
    expect(decidedOnFound(after.seqs)).not.toBe(decidedOnFound(before.seqs));
  });
});

test("a position at a time is before every event of it or later, and behind nearly all older ones", async () => {
  const seqs = await several([900, 700, 500, 300, 0].map((ago) => ({ receivedAgoSeconds: ago })));
  // Numbers between them were never stored.
  await database.db.raw("delete from inbox.receipts where seq = ?", [seqs[1]!]);
  const at = async (ago: number) => eventPositionAt(database.db, new Date(Date.now() - ago * 1_000));
  expect(await at(1_000)).toBeLessThan(seqs[0]!);
  for (const ago of [600, 650]) {
    expect(await at(ago)).toBeGreaterThanOrEqual(seqs[0]!);
    expect(await at(ago)).toBeLessThan(seqs[2]!);
  }
  expect(await at(100)).toBe(seqs[3]);
  expect(await at(-1_000)).toBeGreaterThanOrEqual(seqs[4]!);
});

test("the backlog counts what waits, failed and is dead, and says why", async () => {
  await several([
    { receivedAgoSeconds: 90 },
    { state: "failed", dueInSeconds: 5 },
    { state: "dead", reason: "b" },
    { state: "dead", reason: "a" },
    { state: "dead", reason: "b" },
    { state: "applied" },
  ]);
  const { waitingSince, ...backlog } = await readBacklog(database.db);
  expect(Math.round((Date.now() - (waitingSince?.getTime() ?? 0)) / 10_000)).toBe(9);
  expect(backlog).toEqual({
    waiting: { n: 1, isMore: false },
    failed: { n: 1, isMore: false },
    dead: { n: 3, isMore: false },
    deadReasons: [
      { reason: "b", n: 2 },
      { reason: "a", n: 1 },
    ],
  });
});

test("the lag of a day is that of its completed events, each looked at once", async () => {
  const seqs = await several(Array(10).fill({ state: "applied" }));
  for (const [n, seq] of seqs.entries()) {
    await database
      .db("inbox.progress")
      .where({ seq })
      .update({
        arrived_at: database.db.raw("now()"),
        event_at: database.db.raw("now() - make_interval(secs => ?)", [n + 1]),
        settled_at: database.db.raw("now() + interval '20 milliseconds'"),
      });
  }
  await several([{}]);
  const { days, everyNth } = await readLag(database.db, {
    from: new Date(Date.now() - 86_400_000),
    timeZone: "UTC",
  });
  expect(everyNth).toBe(1);
  expect(days).toMatchObject([
    {
      events: 10,
      untilReceived: { p50: 5_000, p95: 10_000, p99: 10_000 },
      untilApplied: { p50: 20, p95: 20, p99: 20 },
    },
  ]);
});
