import type { Knex } from "knex";
import { beforeEach, expect, inject, onTestFinished, test } from "vitest";
import { readChanges, readableUntil } from "../../src/core/mirror/changes/read-changes.ts";
import { createConsumer, moveConsumer } from "../../src/parts/delivery/consumers.ts";
import { keepFeed, readFeedHealth } from "../../src/core/mirror/changes/feed-partitions.ts";
import { applySnapshots } from "../../src/core/mirror/write/apply.ts";
import { createLog } from "../../src/platform/log.ts";
import { at, sampleOrder, shown } from "../mirror/samples.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { storeChange } from "./stored-changes.ts";

const dayMs = 86_400_000;
const log = createLog({ level: "silent", name: "test" });
const database = useTestDatabase();
beforeEach(() => database.db.raw("delete from feed.changes; delete from feed.consumers"));

const keep = (now: Date, keepDays = 30) => keepFeed({ db: database.db, log }, { now, keepDays });
const daysFrom = (start: Date, days: number): Date => new Date(start.getTime() + days * dayMs);
const seqs = async (): Promise<number[]> =>
  (await database.db("feed.changes").orderBy("seq").pluck<string[]>("seq")).map(Number);

/** Reads all there is, as a consumer does. */
async function readAll(db: Knex, name: string): Promise<number[]> {
  const { consumer } = await createConsumer(db, name, "beginning");
  const { changes, position } = await readChanges(db, { after: consumer.position, limit: 1_000 });
  if (position > consumer.position) {
    await moveConsumer(db, { name, from: consumer.position, to: position });
  }
  return changes.map(({ seq }) => seq);
}

/** A day in torture; a week passes in one step otherwise. */
const stepDays = inject("isTorture") ? 1 : 7;

test("over a year the feed does not grow, and a consumer that reads misses nothing", async () => {
  const { db } = database;
  const start = new Date();
  const [told, read, sizes]: [number[], number[], number[]] = [[], [], []];
  for (let day = 0; day < 365; day += stepDays) {
    const now = daysFrom(start, day);
    await keep(now);
    told.push(await storeChange(db, { recordedAt: now }));
    read.push(...(await readAll(db, "reader")));
    const { rows } = await db.raw<{ rows: unknown[] }>(
      "select from pg_inherits where inhparent = 'feed.changes'::regclass",
    );
    sizes.push((await seqs()).length + rows.length);
  }
  expect(read).toEqual(told);
  expect(await seqs()).toEqual(told.slice(-(await seqs()).length));
  const settled = sizes.slice(Math.ceil(60 / stepDays));
  expect(Math.max(...settled)).toBeLessThan((30 + 14) / stepDays + 12);
});

/** A change in a partition that is over and old. */
async function oldChange(now: Date): Promise<number> {
  const { db } = database;
  await keep(now, 400);
  const seq = await storeChange(db, { recordedAt: daysFrom(now, -100) });
  // The numbers go on to the next partition.
  await keep(now, 400);
  return seq;
}

test("what a consumer has not read is kept, however long ago it last read", async () => {
  const { db } = database;
  const now = new Date();
  const { consumer } = await createConsumer(db, "stopped", "now");
  const seq = await oldChange(now);
  await keep(now);
  expect(await seqs()).toEqual([seq]);
  await moveConsumer(db, { name: "stopped", from: consumer.position, to: seq });
  await keep(now);
  expect(await seqs()).toEqual([]);
});

test("a change that is younger than the setting is kept, though all have read it", async () => {
  const now = new Date();
  const seq = await oldChange(now);
  await keep(now, 101);
  expect(await seqs()).toEqual([seq]);
  await keep(now, 99);
  expect(await seqs()).toEqual([]);
});

test("a partition is kept while a number below its end is still being written", async () => {
  const { db } = database;
  const now = new Date();
  await keep(now, 400);
  const seq = await storeChange(db, { recordedAt: daysFrom(now, -100) });
  const writing = await db.transaction();
  onTestFinished(async () => void (await writing.rollback()));
  await applySnapshots(writing, [shown("order", sampleOrder({ updated_at: at(0) }), at(0))]);
  await keep(now, 400);
  const { dropped } = await keep(now);
  expect(dropped).toEqual([]);
  await writing.rollback();
  expect(await seqs()).toEqual([seq]);
  expect((await keep(now)).dropped).toHaveLength(1);
});

test("when the numbers go on to the next partition, readers do not wait for the first change in it", async () => {
  const { db } = database;
  const now = new Date();
  await keep(now, 400);
  const seq = await storeChange(db, { recordedAt: daysFrom(now, -100) });
  await keep(now, 400);
  expect(await readableUntil(db)).toBeGreaterThanOrEqual(seq);
  const { changes } = await readChanges(db, { after: seq - 1, limit: 10 });
  expect(changes).toMatchObject([{ seq }]);
});

test("a change whose partition is missing is read all the same, shows, and is removed when it is old and read", async () => {
  const { db } = database;
  const now = new Date();
  await db.raw("select setval('feed.change_numbers', 900000000000)");
  const { consumer } = await createConsumer(db, "reader", "now");
  const seq = await storeChange(db, { recordedAt: daysFrom(now, -31) });
  expect(await readFeedHealth(db)).toEqual({ spansAhead: 0, isOverflowing: true });
  expect((await readChanges(db, { after: seq - 1, limit: 10 })).changes).toMatchObject([{ seq }]);
  expect((await keep(now)).removedRows).toBe(0);
  await moveConsumer(db, { name: "reader", from: consumer.position, to: seq });
  expect((await keep(now)).removedRows).toBe(1);
  expect((await readFeedHealth(db)).isOverflowing).toBe(false);
});

test("several workers may do it at once", async () => {
  const { db } = database;
  const start = new Date();
  for (let days = 0; days < 56; days += 7) {
    await storeChange(db, { recordedAt: daysFrom(start, days) });
    await keep(daysFrom(start, days + 7), 400);
  }
  const now = daysFrom(start, 500);
  const changes = await Promise.all(Array.from({ length: 4 }, () => keep(now)));
  const dropped = changes.flatMap((change) => change.dropped);
  expect(new Set(dropped).size, "each is dropped once").toBe(dropped.length);
  // What none of them got a lock for in time.
  await keep(now);
  expect(await seqs()).toEqual([]);
  expect((await readFeedHealth(db)).spansAhead).toBeGreaterThanOrEqual(2);
});
