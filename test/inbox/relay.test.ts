import type { Knex } from "knex";
import { beforeEach, expect, test } from "vitest";
import { claimEvents, completeEvents } from "../../src/inbox/claim.ts";
import { type RelayLimits, defaultRelayLimits, takeRelayRows } from "../../src/inbox/relay.ts";
import { emptyInbox, progressOf, storeRow } from "./stored-events.ts";
import { useTestDatabase } from "../support/use-database.ts";

const database = useTestDatabase();
beforeEach(() => emptyInbox(database.db));

async function takeAll(db: Knex, limits?: RelayLimits): Promise<number[]> {
  const { first, again } = await takeRelayRows(db, limits);
  return [...first, ...again].sort((a, b) => a - b);
}

const lost = { receivedAgoSeconds: 6 };

test("takes what has been received for too long, and nothing that is new", async () => {
  const old = await storeRow(database.db, lost);
  await storeRow(database.db, { receivedAgoSeconds: 4 });
  expect(await takeAll(database.db)).toEqual([old]);
  expect(await progressOf(database.db, old)).toMatchObject({ state: "received", attempts: 0 });
});

test("takes what failed and is due, however new it is, and nothing that waits for its time", async () => {
  const due = await storeRow(database.db, { state: "failed", dueInSeconds: -1, attempts: 3 });
  await storeRow(database.db, { state: "failed", dueInSeconds: 60, receivedAgoSeconds: 900 });
  expect(await takeAll(database.db)).toEqual([due]);
  expect(await progressOf(database.db, due)).toMatchObject({ state: "failed", attempts: 3 });
  const { events } = await database.db.transaction((trx) => claimEvents(trx, [due], 1_000));
  expect(events, "still due for the worker that it is handed to").toHaveLength(1);
});

test.each(["applied", "stale", "ignored", "dead"] as const)(
  "never takes an event that is %s",
  async (state) => {
    await storeRow(database.db, { state, receivedAgoSeconds: 900, dueInSeconds: -900 });
    expect(await takeAll(database.db)).toEqual([]);
  },
);

test("leaves what it took alone for the pause, takes it again afterwards, and says so", async () => {
  const seqs = [
    await storeRow(database.db, lost),
    await storeRow(database.db, { state: "failed", dueInSeconds: -1 }),
  ];
  expect(await takeRelayRows(database.db)).toEqual({ first: seqs, again: [] });
  expect(await takeAll(database.db)).toEqual([]);
  await database.db.raw("update inbox.progress set relayed_at = relayed_at - interval '19 s'");
  expect(await takeAll(database.db)).toEqual([]);
  await database.db.raw("update inbox.progress set relayed_at = relayed_at - interval '2 s'");
  const later = await storeRow(database.db, lost);
  expect(await takeRelayRows(database.db)).toEqual({ first: [later], again: seqs });
});

test("two relays at once never take the same row, and between them take all", async () => {
  const seqs: number[] = [];
  for (let n = 0; n < 20; n++) seqs.push(await storeRow(database.db, lost));
  const limits = { ...defaultRelayLimits, maxRows: 7 };
  const taken: number[] = [];
  for (let round = 0; round < 3; round++) {
    const both = await Promise.all([takeAll(database.db, limits), takeAll(database.db, limits)]);
    taken.push(...both.flat());
  }
  while (taken.length < seqs.length) taken.push(...(await takeAll(database.db, limits)));
  expect(taken.sort((a, b) => a - b)).toEqual(seqs);
});

test("takes nothing while another relay is at work", async () => {
  await storeRow(database.db, lost);
  const other = await database.db.transaction();
  try {
    expect(await takeAll(other)).toHaveLength(1);
    await storeRow(database.db, lost);
    expect(await takeAll(database.db)).toEqual([]);
  } finally {
    await other.rollback();
  }
  expect(await takeAll(database.db)).toHaveLength(2);
});

test("takes the oldest first when there are more than it may", async () => {
  const seqs: number[] = [];
  for (let n = 0; n < 5; n++) seqs.push(await storeRow(database.db, lost));
  const limits = { ...defaultRelayLimits, maxRows: 2 };
  expect(await takeAll(database.db, limits)).toEqual(seqs.slice(0, 2));
  expect(await takeAll(database.db, limits)).toEqual(seqs.slice(2, 4));
});

test("neither waits for rows that a worker holds nor takes them", { timeout: 5_000 }, async () => {
  const held = await storeRow(database.db, lost);
  const free = await storeRow(database.db, lost);
  const worker = await database.db.transaction();
  try {
    await claimEvents(worker, [held], 1_000_000);
    const relay = await database.db.transaction();
    try {
      await relay.raw("set local lock_timeout = '500ms'");
      expect(await takeAll(relay)).toEqual([free]);
    } finally {
      await relay.rollback();
    }
    await completeEvents(worker, [
      { seq: held, state: "applied", reason: null, resourceType: null, resourceId: null },
    ]);
    await worker.commit();
  } finally {
    if (!worker.isCompleted()) await worker.rollback();
  }
});
