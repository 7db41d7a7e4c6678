import { beforeEach, describe, expect, inject, onTestFinished, test, vi } from "vitest";
import { claimNext } from "../../src/core/inbox/claim.ts";
import { keepPartitions, planWeeks, readPartitionHealth } from "../../src/core/inbox/partitions.ts";
import { firstEventAt } from "../../src/core/inbox/queries.ts";
import { replayEvents } from "../../src/core/inbox/retention.ts";
import { createLog } from "../../src/platform/log.ts";
import { databaseNow } from "../../src/platform/postgres/database-clock.ts";
import { eventually } from "../support/eventually.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { openInbox } from "./inbox-stand.ts";
import { emptyInbox, storeRow, verifiedEvent } from "./stored-events.ts";

const dayMs = 86_400_000;
const log = createLog({ level: "silent", name: "test" });
const monday = new Date("2026-11-23T00:00:00Z");
const daysAfter = (days: number): Date => new Date(monday.getTime() + days * dayMs);

test("weeks of the memory against repeats are made four ahead, and dropped when all of them is forgotten", () => {
  const weeks = [-100, -97, -91, -90].map((days) => daysAfter(days - (((days % 7) + 7) % 7)));
  const { create, drop } = planWeeks(weeks, daysAfter(3), 90);
  expect(create).toEqual([0, 7, 14, 21, 28].map(daysAfter));
  expect(drop).toEqual([-105, -98].map(daysAfter));
  expect(planWeeks(weeks, daysAfter(3), 5).drop, "90 days at least").toEqual(drop);
});

describe("the partitions of a database", () => {
  const database = useTestDatabase();
  beforeEach(() => emptyInbox(database.db));

  const partitions = async (): Promise<string[]> => {
    const { rows } = await database.db.raw<{ rows: { name: string }[] }>(
      `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
       where i.inhparent::regclass::text in ('inbox.receipts', 'inbox.progress', 'inbox.seen')`,
    );
    return rows.map(({ name }) => name);
  };
  const keep = (now: Date, keepDays = 90) => keepPartitions({ db: database.db, log }, { now, keepDays });

  /** A day in torture; the rest of a week passes in one step otherwise, and two years are one. */
  const stepDays = inject("isTorture") ? 1 : 7;

  const years = inject("isTorture") ? 2 : 1;

  test(`over the years (${years}), tables do not grow and no event is lost before its time`, async () => {
    const { db } = database;
    const start = new Date();
    const stand = openInbox(database.url);
    const counts: number[] = [];
    for (let day = 0; day < years * 365; day += stepDays) {
      const now = new Date(start.getTime() + day * dayMs);
      await keep(now);
      const event = verifiedEvent({ createdAt: now.toISOString() });
      expect(await stand.appender.append(event)).toMatchObject({ duplicate: false });
      await db("inbox.receipts").where("event_id", event.eventId).update({ received_at: now });
      await db("inbox.progress").where({ state: "received" }).update({ state: "applied" });
      counts.push((await partitions()).length);
    }
    await stand.close();
    const rowsOf = async (table: string) => (await db(table).select("seq")).length;
    const kept = await rowsOf("inbox.receipts");
    expect(kept).toBeGreaterThanOrEqual(90 / stepDays);
    expect(kept).toBeLessThan((90 + 14) / stepDays + 2);
    expect(await rowsOf("inbox.progress")).toBe(kept);
    expect(await rowsOf("inbox.seen")).toBeLessThan((90 + 14) / stepDays + 2);
    const settled = counts.slice(Math.ceil(130 / stepDays));
    expect(Math.max(...settled) - Math.min(...settled)).toBeLessThan(8);
    expect(await firstEventAt(db), "is remembered").toEqual(start);
  });

  test("an event that is dead or not applied outlives its partition's time, and what is settled beside it does not", async () => {
    const { db } = database;
    const now = new Date();
    await keep(now);
    const dead = await storeRow(db, { state: "dead", receivedAgoSeconds: 200 * 86_400 });
    const waiting = await storeRow(db, { receivedAgoSeconds: 200 * 86_400 });
    await storeRow(db, { state: "applied", receivedAgoSeconds: 200 * 86_400 });
    const { removedRows } = await keep(now);
    const left = await db("inbox.receipts").orderBy("seq").pluck<string[]>("seq");
    expect(left.map(Number)).toEqual([dead, waiting]);
    expect(removedRows).toBe(1);
  });

  test("a repeat is recognised across weeks, and 89 days later", async () => {
    const event = verifiedEvent({ createdAt: new Date().toISOString() });
    const append = async () => {
      const stand = openInbox(database.url);
      const answer = await stand.appender.append({ ...event });
      await stand.close();
      return answer;
    };
    expect(await append()).toMatchObject({ duplicate: false });
    for (let days = 0; days <= 89; days += 7) await keep(new Date(Date.now() + days * dayMs));
    expect(await append()).toMatchObject({ duplicate: true });
  });

  test("a week whose events came before it was made takes them over", async () => {
    const ahead = new Date(Date.now() + 100 * dayMs);
    const event = verifiedEvent({ createdAt: ahead.toISOString() });
    const stand = openInbox(database.url);
    expect(await stand.appender.append({ ...event })).toMatchObject({ duplicate: false });
    await keep(ahead);
    expect(await stand.appender.append({ ...event })).toMatchObject({ duplicate: true });
    await stand.close();
  });

  test("an event whose number was given by hand, ahead of all others, is taken into its partition", async () => {
    const { db } = database;
    const until = Math.max(...(await partitions()).map((name) => Number(/\d+$/.exec(name)?.[0] ?? 0)));
    const from = until + 30_000_000;
    const seq = String(from + 5);
    await db("inbox.receipts").insert({
      seq,
      event_id: "by hand",
      raw_sha256: Buffer.alloc(32),
      raw: Buffer.from("{}"),
      secret_id: "x",
    });
    await db("inbox.progress").insert({ seq });
    await db.raw(`select inbox.make_partitions(${from}, ${from + 10})`);
    for (const table of ["receipts", "progress"]) {
      expect(await db(`inbox.${table}_${from}`).pluck("seq")).toEqual([seq]);
      expect(await db(`inbox.${table}_default`).where({ seq })).toEqual([]);
    }
    await db.raw(`select inbox.drop_partitions(${from})`);
  });

  test("several workers may do it at once", async () => {
    // A week each: many partitions that are all dropped in the end.
    for (let days = 0; days < 56; days += 7) {
      const day = new Date(Date.now() + days * dayMs);
      await storeRow(database.db, { state: "applied" });
      await database.db("inbox.receipts").update({ received_at: day });
      await keep(new Date(day.getTime() + 7 * dayMs), 400);
    }
    expect((await partitions()).length).toBeGreaterThan(20);
    const now = new Date(Date.now() + 500 * dayMs);
    const changes = await Promise.all(Array.from({ length: 8 }, () => keep(now)));
    const dropped = changes.flatMap((change) => change.dropped);
    expect(new Set(dropped).size, "each is dropped once").toBe(dropped.length);
    // What none of them got a lock for in time.
    await keep(now);
    const health = await readPartitionHealth(database.db, now);
    expect(health.weeksAhead).toBeGreaterThanOrEqual(4);
    expect(health.spansAhead).toBeGreaterThanOrEqual(2);
  });

  test("events whose partition is missing are stored and applied all the same, and the overflow shows", async () => {
    const { db } = database;
    const far = 900_000_000_000;
    expect((await readPartitionHealth(db, new Date())).isOverflowing).toBe(false);
    await db.raw(`select setval('inbox.event_numbers', ${far})`);
    const stand = openInbox(database.url);
    await stand.appender.append(verifiedEvent());
    await stand.close();
    const limits = { rows: 5, bytes: 1_000, atLeast: 1, lateAfterMs: 0 };
    const { events } = await db.transaction((trx) => claimNext(trx, 0, limits));
    expect(events.map(({ seq }) => seq)).toEqual([far + 1]);
    const health = { spansAhead: 0, isOverflowing: true };
    expect(await readPartitionHealth(db, new Date())).toMatchObject(health);
    await keep(new Date());
    expect((await readPartitionHealth(db, new Date())).spansAhead).toBe(2);
    await keep(new Date());
    expect((await readPartitionHealth(db, new Date())).isOverflowing).toBe(false);
  });

  test("an event outside the partitions is removed when it is settled and old", async () => {
    const { db } = database;
    await db.raw("select setval('inbox.event_numbers', 1900000000000)");
    const old = { receivedAgoSeconds: 100 * 86_400 };
    const createdAt = "2026-03-01T12:00:00Z";
    await storeRow(db, { ...old, state: "applied", createdAt });
    const left = [await storeRow(db, { ...old, state: "dead" }), await storeRow(db, {})];
    const { removedRows } = await keep(new Date());
    expect(removedRows).toBe(1);
    for (const table of ["inbox.receipts", "inbox.progress"]) {
      expect((await db(table).orderBy("seq").pluck<string[]>("seq")).map(Number)).toEqual(left);
    }
  });

  /** Until it waits for a lock; it gives up soon. */
  async function untilItWaits(keeping: Promise<unknown>): Promise<void> {
    let isDone = false;
    void keeping.finally(() => (isDone = true));
    const waiting = () =>
      database
        .db("pg_stat_activity")
        .whereRaw("datname = current_database() and wait_event_type = 'Lock'")
        .first("pid");
    await eventually("a lock is waited for", async () => isDone || (await waiting()));
  }

  /** An event of a partition that is over and old. */
  async function oldEvent(): Promise<number> {
    const { db } = database;
    await keep(new Date());
    await keep(new Date());
    const seq = await storeRow(db, { state: "applied", receivedAgoSeconds: 100 * 86_400 });
    await keep(new Date(), 400);
    return seq;
  }

  test("an event that is just being replayed keeps its partition", async () => {
    const { db } = database;
    const seq = await oldEvent();
    const replay = await db.transaction();
    onTestFinished(async () => void (await replay.rollback()));
    expect(await replayEvents(replay, [seq])).toEqual([seq]);
    const keeping = keep(new Date());
    await untilItWaits(keeping);
    await replay.commit();
    await keeping;
    expect(await db("inbox.progress").where({ seq }).pluck("state")).toEqual(["received"]);
  });

  test("numbers never move back, however long a worker was stopped before it moved them on", async () => {
    const { db } = database;
    await oldEvent();
    await storeRow(db, { receivedAgoSeconds: 8 * 86_400 });
    const others = await db.transaction();
    onTestFinished(async () => void (await others.rollback()));
    // The next partition cannot be attached now.
    await others.raw("lock table inbox.receipts_default in access share mode");
    const keeping = keep(new Date(), 400);
    await untilItWaits(keeping);
    const far = 5_000_000_000_000;
    await db.raw("select setval('inbox.event_numbers', ?)", [far]);
    await others.rollback();
    await keeping;
    const { rows } = await db.raw<{ rows: [{ n: string }] }>("select nextval('inbox.event_numbers') as n");
    expect(Number(rows[0].n)).toBe(far + 1);
  });

  test("a machine whose clock is years ahead drops nothing", async () => {
    const seq = await oldEvent();
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 4_000 * dayMs });
    try {
      await keepPartitions({ db: database.db, log }, { now: await databaseNow(database.db), keepDays: 400 });
    } finally {
      vi.useRealTimers();
    }
    expect(await database.db("inbox.progress").pluck<string[]>("seq")).toEqual([String(seq)]);
  });

  test("a dead event keeps nobody from forgetting what came without a time after it", async () => {
    const { db } = database;
    await db.raw("select setval('inbox.event_numbers', 2700000000000)");
    await keep(new Date());
    const stand = openInbox(database.url);
    const arrive = async (state: string, daysAgo: number): Promise<void> => {
      const event = verifiedEvent({ createdAt: null });
      await stand.appender.append(event);
      const received_at = new Date(Date.now() - daysAgo * dayMs);
      await db("inbox.receipts").where("event_id", event.eventId).update({ received_at });
      await db("inbox.progress").where({ state: "received" }).update({ state });
    };
    await arrive("dead", 300);
    await arrive("applied", 200);
    expect(await db("inbox.seen_default")).toHaveLength(2);
    await keep(new Date());
    await arrive("applied", 1);
    await stand.close();
    await keep(new Date());
    const left = await db("inbox.receipts").orderBy("seq").pluck<string[]>("seq");
    expect(left, "the dead one and today's").toHaveLength(2);
    expect(await db("inbox.seen_default").orderBy("seq").pluck("seq")).toEqual(left);
  });
});
