import fc from "fast-check";
import { beforeEach, expect, test } from "vitest";
import { positionAt, readChanges, readableUntil } from "../../src/core/mirror/changes/read-changes.ts";
import {
  createConsumer,
  listConsumers,
  moveConsumer,
  readConsumer,
  removeConsumer,
} from "../../src/parts/delivery/consumers.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { storeChange } from "./stored-changes.ts";
import { rounds } from "../support/rounds.ts";

const database = useTestDatabase();
beforeEach(() => database.db.raw("delete from feed.changes; delete from feed.consumers"));

const minuteMs = 60_000;
const start = new Date("2026-11-01T00:00:00Z");
const minutesAfter = (minutes: number): Date => new Date(start.getTime() + minutes * minuteMs);

test("a consumer begins with what comes next, with the oldest change, or at a time", async () => {
  const { db } = database;
  const stored: number[] = [];
  for (const minutes of [0, 10, 20]) {
    stored.push(await storeChange(db, { recordedAt: minutesAfter(minutes) }));
  }
  const readBy = async (name: string): Promise<number[]> => {
    const { position = -1 } = (await readConsumer(db, name)) ?? {};
    const { changes } = await readChanges(db, { after: position, limit: 10 });
    return changes.map(({ seq }) => seq);
  };
  await createConsumer(db, "now", "now");
  await createConsumer(db, "beginning", "beginning");
  await createConsumer(db, "time", minutesAfter(10));
  expect(await readBy("now")).toEqual([]);
  expect(await readBy("beginning")).toEqual(stored);
  expect(await readBy("time")).toEqual(stored.slice(1));
});

test("a position at a time leaves out nothing that was recorded then or later, though changes are dated up to a minute early", async () => {
  const { db } = database;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ gap: fc.nat(3), early: fc.integer({ min: 0, max: 59 }) }), {
        maxLength: 12,
      }),
      fc.integer({ min: -2, max: 30 }),
      async (given, minutes) => {
        await db.raw("delete from feed.changes");
        let now = start.getTime();
        const stored: { seq: number; recordedAt: Date }[] = [];
        for (const { gap, early } of given) {
          now += gap * minuteMs;
          const recordedAt = new Date(now - early * 1_000);
          stored.push({ seq: await storeChange(db, { recordedAt }), recordedAt });
        }
        const time = minutesAfter(minutes);
        const position = await positionAt(db, time);
        const leftOut = stored.filter(({ seq }) => seq <= position);
        expect(leftOut.filter(({ recordedAt }) => recordedAt >= time)).toEqual([]);
        const first = stored.find(({ seq }) => seq > position);
        const twoBefore = time.getTime() - 2 * minuteMs;
        expect(first?.recordedAt.getTime() ?? Infinity).toBeGreaterThanOrEqual(twoBefore);
      },
    ),
    { numRuns: rounds(4, 40) },
  );
});

test("a consumer that is there already keeps its position", async () => {
  const { db } = database;
  await createConsumer(db, "receipts", "beginning");
  await storeChange(db, { recordedAt: start });
  const { consumer, isNew } = await createConsumer(db, "receipts", "now");
  expect([consumer.position, isNew]).toEqual([0, false]);
});

test("of two that move a consumer from one position, one does, and the other is told", async () => {
  const { db } = database;
  await createConsumer(db, "receipts", "beginning");
  const moves = await Promise.all([5, 7].map((to) => moveConsumer(db, { name: "receipts", from: 0, to })));
  expect(moves.filter((moved) => moved)).toHaveLength(1);
  expect([5, 7]).toContain((await readConsumer(db, "receipts"))?.position);
});

test("a move takes effect with the transaction that it is part of", async () => {
  const { db } = database;
  await createConsumer(db, "receipts", "beginning");
  const trx = await db.transaction();
  expect(await moveConsumer(trx, { name: "receipts", from: 0, to: 5 })).toBe(true);
  await trx.rollback();
  expect((await readConsumer(db, "receipts"))?.position).toBe(0);
});

test("a consumer never moves back or stays", async () => {
  const { db } = database;
  await createConsumer(db, "receipts", "beginning");
  for (const to of [0, -1, Number.NaN]) {
    await expect(moveConsumer(db, { name: "receipts", from: 0, to })).rejects.toThrow(RangeError);
  }
});

test("a consumer that was removed is not moved", async () => {
  const { db } = database;
  await createConsumer(db, "receipts", "beginning");
  expect(await removeConsumer(db, "receipts")).toBe(0);
  expect(await removeConsumer(db, "receipts")).toBeNull();
  expect(await moveConsumer(db, { name: "receipts", from: 0, to: 5 })).toBe(false);
  expect(await readConsumer(db, "receipts")).toBeNull();
});

test("consumers are listed with the time of the oldest change that they have not read", async () => {
  const { db } = database;
  await createConsumer(db, "behind", "now");
  await storeChange(db, { recordedAt: minutesAfter(0) });
  await storeChange(db, { recordedAt: minutesAfter(10) });
  await createConsumer(db, "ready", "now");
  expect(await readableUntil(db)).toBe((await readConsumer(db, "ready"))?.position);
  expect(await listConsumers(db)).toMatchObject([
    { name: "behind", unreadSince: minutesAfter(0) },
    { name: "ready", unreadSince: null },
  ]);
});
