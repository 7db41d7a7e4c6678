import { createHash } from "node:crypto";
import type { Knex } from "knex";
import type { ClientBase } from "pg";
import { beforeEach, expect, test } from "vitest";
import { watchArrivals } from "../../src/core/inbox/arrivals.ts";
import { keyOf, storeBatch } from "../../src/core/inbox/store-batch.ts";
import { createLog } from "../../src/platform/log.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { emptyInbox, storeRow, verifiedEvent } from "./stored-events.ts";

const database = useTestDatabase();
beforeEach(() => emptyInbox(database.db));

/** Stores an event in a transaction that is left open. */
async function storeUncommitted(): Promise<{ seq: number; trx: Knex.Transaction }> {
  const trx = await database.db.transaction();
  return { seq: await storeRow(trx), trx };
}

test("gives what comes, once, and not what was there", async () => {
  const before = await storeRow(database.db);
  const arrivals = await watchArrivals(database.db);
  expect(arrivals.wasThere(before)).toBe(true);
  expect(await arrivals.next()).toEqual([]);
  const [a, b] = [await storeRow(database.db), await storeRow(database.db)];
  expect(await arrivals.next()).toEqual([a, b]);
  expect(await arrivals.next()).toEqual([]);
  expect(arrivals.wasThere(a)).toBe(false);
});

test("an event that is committed after one with a higher number comes before it", async () => {
  await storeRow(database.db);
  const arrivals = await watchArrivals(database.db);
  const early = await storeUncommitted();
  const later = await storeRow(database.db);
  expect(later).toBeGreaterThan(early.seq);
  expect(await arrivals.next()).toEqual([]);
  await early.trx.commit();
  expect(await arrivals.next()).toEqual([early.seq, later]);
  expect(await arrivals.next()).toEqual([]);
});

test("an event that was under way when the watch began is not left out", async () => {
  const early = await storeUncommitted();
  const later = await storeRow(database.db);
  const arrivals = await watchArrivals(database.db);
  expect([early.seq, later].map(arrivals.wasThere)).toEqual([false, false]);
  await early.trx.commit();
  expect(await arrivals.next()).toEqual([early.seq, later]);
});

test("a number that was given out for nothing holds up nobody", async () => {
  const arrivals = await watchArrivals(database.db);
  const never = await storeUncommitted();
  const later = await storeRow(database.db);
  await never.trx.rollback();
  expect(await arrivals.next()).toEqual([later]);
});

test("what a receiver stores is not left out, whichever of several batches commits first", async () => {
  const { db } = database;
  const arrivals = await watchArrivals(db);
  const log = createLog({ level: "silent", name: "test" });
  const pools = await Promise.all([0, 1, 2].map(() => db.transaction()));
  const clients = pools.map((trx) => trx.client as { acquireConnection(): Promise<ClientBase> });
  for (const [n, client] of clients.entries()) {
    const event = verifiedEvent();
    const sha256 = createHash("sha256").update(event.raw).digest("hex");
    const row = { event, sha256, key: keyOf(sha256), resolve: () => {}, reject: () => {} };
    await storeBatch({ client: await client.acquireConnection(), log }, [row]);
    expect(await arrivals.next(), `after ${n + 1} that have not committed`).toEqual([]);
  }
  for (const n of [2, 1]) await pools[n]?.commit();
  expect(await arrivals.next()).toEqual([]);
  await pools[0]?.commit();
  expect(await arrivals.next()).toHaveLength(3);
});

test("of a flood nothing is left out, however it is cut", async () => {
  const arrivals = await watchArrivals(database.db);
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
  expect(all).toEqual((await database.db("inbox.receipts").orderBy("seq").pluck("seq")).map(Number));
});

/** The numbers go on to the next partition, as they do every week. */
const jump = () => database.db.raw("select setval('inbox.event_numbers', nextval('inbox.event_numbers') + 5000000)");

test("an event that was under way when the numbers jumped is not left out", async () => {
  await storeRow(database.db);
  const arrivals = await watchArrivals(database.db);
  const early = await storeUncommitted();
  await jump();
  const later = await storeRow(database.db);
  expect(await arrivals.next()).toEqual([]);
  await early.trx.commit();
  expect(await arrivals.next()).toEqual([early.seq, later]);
  expect(await arrivals.next()).toEqual([]);
});
