import { afterEach, beforeEach, expect, test } from "vitest";
import { claimEvents } from "../../src/core/inbox/claim.ts";
import { replayEvents } from "../../src/core/inbox/retention.ts";
import { type ApplyLoop, createApplyLoop } from "../../src/core/worker/apply-loop.ts";
import { progressOf, storeRow } from "../inbox/stored-events.ts";
import { eventually } from "../support/eventually.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { applyDeps, emptyAll } from "./worker-stand.ts";

const database = useTestDatabase();
const open: ApplyLoop[] = [];
beforeEach(() => emptyAll(database.db));
afterEach(async () => {
  for (const loop of open.splice(0)) await loop.close();
});

function startLoop(): ApplyLoop {
  const loop = createApplyLoop(applyDeps(database.db), { atOnce: 2 });
  open.push(loop);
  return loop;
}

const store = (): Promise<number> => storeRow(database.db, { raw: Buffer.from("{}") });
const isSettled = async (seq: number): Promise<boolean> => (await progressOf(database.db, seq)).state !== "received";

test("takes what is there when it is woken, and finds by itself what comes soon after", async () => {
  const loop = startLoop();
  const before = await store();
  loop.wake();
  await eventually("the event is settled", () => isSettled(before));
  const later = await store();
  await eventually("the later one is settled", () => isSettled(later));
});

test("takes everything that waits, in several batches", async () => {
  await database.db.raw(
    `with stored as (
       insert into inbox.receipts (event_id, raw_sha256, raw, secret_id)
       select 'evt_' || n, sha256(n::text::bytea), '{}', 'env-1' from generate_series(1, 2100) n returning seq
     )
     insert into inbox.progress (seq) select seq from stored`,
  );
  startLoop().wake();
  await eventually("none is left", async () => {
    const row = await database.db("inbox.progress").where({ state: "received" }).first("seq");
    return row === undefined;
  });
});

test("sleeps after a while without events, until it is woken", async () => {
  const loop = startLoop();
  loop.wake();
  await eventually("it sleeps", () => loop.sinceProgressMs() === 0);
  const seq = await store();
  loop.wake();
  await eventually("the event is settled", () => isSettled(seq));
});

test("sleeps though an event that somebody else holds is seen, and takes it when it is free", async () => {
  const loop = startLoop();
  const held = await store();
  const other = await database.db.transaction();
  await claimEvents(other, [held], { bytes: 1_000 });
  loop.wake();
  await eventually("it sleeps", () => loop.sinceProgressMs() === 0);
  await other.rollback();
  loop.wake();
  await eventually("the event is settled", () => isSettled(held));
});

test("a sweep takes an old event that was put back", async () => {
  const loop = startLoop();
  const old = await store();
  loop.wake();
  await eventually("it is settled", () => isSettled(old));
  await replayEvents(database.db, [old]);
  loop.sweep();
  await eventually("it is settled again", () => isSettled(old));
});

test("a database that is away ends nothing: events are taken when it is back", async () => {
  const loop = startLoop();
  await database.db.raw("alter table inbox.progress rename to away");
  loop.wake();
  await database.db.raw("alter table inbox.away rename to progress");
  const seq = await store();
  await eventually("the event is settled", () => isSettled(seq));
});

test("takes nothing more once it is closed", async () => {
  const loop = startLoop();
  await loop.close();
  const seq = await store();
  loop.wake();
  loop.sweep();
  await loop.close();
  expect(await isSettled(seq)).toBe(false);
});
