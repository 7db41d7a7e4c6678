import type { Knex } from "knex";
import { beforeEach, expect, test } from "vitest";
import { watchArrivals } from "../../src/inbox/arrivals.ts";
import { wallClock } from "../../src/platform/clock.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { emptyInbox, storeRow } from "./stored-events.ts";

const database = useTestDatabase();
beforeEach(() => emptyInbox(database.db));

/** Stores an event in a transaction that is left open. */
async function storeUncommitted(): Promise<{ seq: number; trx: Knex.Transaction }> {
  const trx = await database.db.transaction();
  return { seq: await storeRow(trx), trx };
}

test("gives what comes, once, and not what was there", async () => {
  const before = await storeRow(database.db);
  const arrivals = await watchArrivals(database.db, wallClock);
  expect(arrivals.wasThere(before)).toBe(true);
  expect(await arrivals.next()).toEqual([]);
  const [a, b] = [await storeRow(database.db), await storeRow(database.db)];
  expect(await arrivals.next()).toEqual([a, b]);
  expect(await arrivals.next()).toEqual([]);
  expect(arrivals.wasThere(a)).toBe(false);
});

test("an event that is committed after one with a higher number is not left out", async () => {
  await storeRow(database.db);
  const arrivals = await watchArrivals(database.db, wallClock);
  const early = await storeUncommitted();
  const later = await storeRow(database.db);
  expect(later).toBeGreaterThan(early.seq);
  expect(await arrivals.next()).toEqual([later]);
  await early.trx.commit();
  expect(await arrivals.next()).toEqual([early.seq]);
  expect(await arrivals.next()).toEqual([]);
});

test("an event that was under way when the watch began is not left out", async () => {
  const early = await storeUncommitted();
  const later = await storeRow(database.db);
  const arrivals = await watchArrivals(database.db, wallClock);
  expect(arrivals.wasThere(later)).toBe(true);
  expect(arrivals.wasThere(early.seq)).toBe(false);
  await early.trx.commit();
  expect(await arrivals.next()).toEqual([early.seq]);
});

test("a number that was given out for nothing is looked for a minute long", async () => {
  let nowMs = 0;
  const clock = { now: () => new Date(nowMs) };
  const arrivals = await watchArrivals(database.db, clock);
  const [soon, never] = [await storeUncommitted(), await storeUncommitted()];
  await storeRow(database.db);
  await arrivals.next();
  nowMs = 59_000;
  await soon.trx.commit();
  expect(await arrivals.next()).toEqual([soon.seq]);
  nowMs = 61_000;
  expect(await arrivals.next()).toEqual([]);
  await never.trx.commit();
  expect(await arrivals.next()).toEqual([]);
});

test("of a flood nothing is left out, however it is cut", async () => {
  const arrivals = await watchArrivals(database.db, wallClock);
  await database.db.raw(
    `with stored as (
       insert into inbox.receipts (event_id, raw_sha256, secret_id)
       select 'evt_' || n, sha256(n::text::bytea), 'env-1' from generate_series(1, 2500) n returning seq
     ) insert into inbox.progress (seq) select seq from stored`,
  );
  const all: number[] = [];
  for (let came = await arrivals.next(); came.length > 0; came = await arrivals.next()) {
    all.push(...came);
  }
  expect(all).toEqual(
    (await database.db("inbox.receipts").orderBy("seq").pluck("seq")).map(Number),
  );
});

/** The numbers go on to the next partition, as they do every week. */
const jump = () =>
  database.db.raw("select setval('inbox.event_numbers', nextval('inbox.event_numbers') + 5000000)");

test("an event that was under way when the numbers jumped is not left out", async () => {
  await storeRow(database.db);
  const arrivals = await watchArrivals(database.db, wallClock);
  const early = await storeUncommitted();
  await jump();
  const later = await storeRow(database.db);
  expect(await arrivals.next()).toEqual([later]);
  await early.trx.commit();
  expect(await arrivals.next()).toEqual([early.seq]);
  expect(await arrivals.next()).toEqual([]);
});

test("events beyond a jump that were under way when the watch began are not left out, on either side", async () => {
  await storeRow(database.db);
  const before = await storeUncommitted();
  await jump();
  const after = await storeUncommitted();
  const later = await storeRow(database.db);
  const arrivals = await watchArrivals(database.db, wallClock);
  expect([before.seq, after.seq, later].map(arrivals.wasThere)).toEqual([false, false, true]);
  await after.trx.commit();
  expect(await arrivals.next()).toEqual([after.seq]);
  await before.trx.commit();
  expect(await arrivals.next()).toEqual([before.seq]);
});
