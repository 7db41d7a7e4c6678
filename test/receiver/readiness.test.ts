import type { Knex } from "knex";
import type { Pool } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { createLog } from "../../src/platform/log.ts";
import { createDatabase, createPool } from "../../src/platform/postgres/pool.ts";
import { createJobQueue } from "../../src/core/queue/job-queue.ts";
import { watchRoundTrips } from "../../src/core/queue/round-trips.ts";
import { deferLocked } from "../../src/core/inbox/locked-events.ts";
import { createReadiness, lockWaitCheck } from "../../src/core/receiver/readiness.ts";
import { createTestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { redisAvailable } from "../support/redis.ts";
import { testPooling } from "../support/pooling.ts";
import { askRedis, startWatchedRedis } from "../support/redis-many.ts";
import { storeRow } from "../inbox/stored-events.ts";
import { useTestDatabase } from "../support/use-database.ts";
import { startStand, timed } from "./receiver-stand.ts";

const database = useTestDatabase();

const silent = createLog({ level: "silent", name: "test" });

/** Connections of one's own, which have not connected yet. */
function openConnections(
  url: string = database.url,
  pooling = testPooling(),
): {
  db: Knex;
  pool: Pool;
  close(): Promise<void>;
} {
  const common = { url, pooling, applicationName: "test" };
  const db = createDatabase({ ...common, poolMax: 1 });
  const pool = createPool({ ...common, max: 1 });
  return { db, pool, close: async () => void (await Promise.all([db.destroy(), pool.end()])) };
}

/** What `GET /readyz` would say, with connections of one's own. */
async function reportOf(url: string, pooling = testPooling()): Promise<{ report: unknown; ms: number }> {
  const { db, pool, close } = openConnections(url, pooling);
  const readiness = createReadiness({ db, pool, log: silent, degrading: [] }, { timeoutMs: 60_000 });
  try {
    const { result, ms } = await timed(readiness);
    return { report: result, ms };
  } finally {
    await close();
  }
}

test("a receiver that takes events says so, and shows nothing else", async () => {
  const stand = await startStand(database.url);
  const ready = await stand.request({ method: "GET", path: "/readyz" });
  expect([ready.status, JSON.parse(ready.body)]).toEqual([200, { status: "ok", reasons: [] }]);
  expect(ready.headers.get("cache-control")).toBe("no-store");
  const alive = await stand.request({ method: "GET", path: "/healthz" });
  expect([alive.status, JSON.parse(alive.body)]).toEqual([200, { status: "ok" }]);
  expect((await stand.request({ method: "POST", path: "/readyz" })).headers.get("allow")).toBe("HEAD, GET");
  expect(await database.db("receiver.probes")).toEqual([]);
  await stand.close();
});

test("a receiver behind a pooler that lends by the transaction says so, too", async () => {
  const { report } = await reportOf(database.url, "transaction");
  expect(report).toEqual({ status: "ok", reasons: [] });
  expect(await database.db("receiver.probes")).toEqual([]);
});

test("a queue or a service that is away only degrades", async () => {
  const stand = await startStand(database.url, {
    environment: [],
    degrading: [
      { name: "queue", check: () => Promise.reject(new Error("at redis://secret@host")) },
      { name: "service", check: () => Promise.resolve() },
    ],
  });
  const answer = await stand.request({ method: "GET", path: "/readyz" });
  expect(answer.status).toBe(200);
  expect(JSON.parse(answer.body)).toEqual({
    status: "degraded",
    reasons: ["queue", "signing_secrets"],
  });
  await stand.close();
});

test.skipIf(!redisAvailable)(
  "a queue that can only be read, whose master is away, or from which nobody takes jobs, degrades until one comes back",
  async () => {
    const redis = await startWatchedRedis();
    const queue = createJobQueue({ log: silent }, { kind: "redis", url: redis.url });
    const { db, pool, close } = openConnections();
    onTestFinished(async () => {
      await Promise.all([queue.close(), close()]);
      await redis.destroy();
    });
    const roundTrips = watchRoundTrips({ queue, log: silent }, { betweenMs: 50 });
    onTestFinished(() => roundTrips.close());
    const readiness = createReadiness(
      { db, pool, log: silent, degrading: [{ name: "queue", check: roundTrips.check }] },
      { cacheMs: 0, timeoutMs: 60_000 },
    );
    const until = (status: string) => eventually(status, async () => (await readiness()).status === status);
    const degraded = { status: "degraded", reasons: ["queue"] };
    expect(await readiness()).toEqual(degraded);
    queue.consume(() => {});
    await until("ok");
    const master = await redis.queueOwner();
    await askRedis(master.port, (client) => client.config("SET", "min-replicas-to-write", "2"));
    await until("degraded");
    await askRedis(master.port, (client) => client.config("SET", "min-replicas-to-write", "0"));
    await until("ok");
    await master.kill9();
    await until("degraded");
    await until("ok");
  },
);

test("events that wait for a lock for over a minute degrade, and the process is named without what it runs", async () => {
  const { db } = database;
  const seq = await storeRow(db);
  const holder = "process 4711 (psql, idle in transaction). To end it: select pg_terminate_backend(4711);";
  await deferLocked(db, [{ seq, holder }], { delayMs: 5_000 });
  const { pool, close } = openConnections();
  onTestFinished(close);
  const readiness = createReadiness(
    { db, pool, log: silent, degrading: [lockWaitCheck(db)] },
    { cacheMs: 0, timeoutMs: 60_000 },
  );
  const pause = () => new Promise((resolve) => setTimeout(resolve, 10));
  expect(await readiness()).toEqual({ status: "ok", reasons: [] });
  const early = new Date(Date.now() - 75_000).toISOString();
  await db("inbox.progress")
    .where({ seq })
    .update({ reason: db.raw("regexp_replace(reason, 'since \\S+', ?)", [`since ${early}`]) });
  // A further attempt in vain does not begin the wait again.
  await deferLocked(db, [{ seq, holder }], { delayMs: 5_000 });
  await pause();
  expect(await readiness()).toEqual({
    status: "degraded",
    reasons: ["locks"],
    details: [expect.stringMatching(/^1 event waits for a lock, the first for .*, of process 4711$/)],
  });
  await db("inbox.progress").where({ seq }).update({ state: "applied" });
  await pause();
  expect(await readiness()).toEqual({ status: "ok", reasons: [] });
});

test("a check that hangs does not hang the answer, and is not started twice", async () => {
  let started = 0;
  const hanging = { name: "queue", check: () => new Promise((): void => void (started += 1)) };
  const { db, pool, close } = openConnections();
  const readiness = createReadiness({ db, pool, log: silent, degrading: [hanging] }, { cacheMs: 0, timeoutMs: 500 });
  // The time limit is for the check that hangs, not for a first connection.
  await Promise.all([db.raw("select 1"), pool.query("select 1")]);
  for (let n = 0; n < 3; n++) {
    const { result, ms } = await timed(readiness);
    expect(result).toEqual({ status: "degraded", reasons: ["queue"] });
    expect(ms).toBeLessThan(5_000);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  expect(started).toBe(1);
  await close();
});

test("a database that only reads is no place for events", async () => {
  const url = new URL(database.directUrl);
  url.searchParams.set("options", "-c default_transaction_read_only=on");
  expect((await reportOf(url.href)).report).toEqual({
    status: "unavailable",
    reasons: ["database"],
  });
});

test("a schema that lacks a migration is not ready", async () => {
  const own = await createTestDatabase();
  await own.db("tallyhook_migrations").where("name", "like", "0001%").delete();
  expect((await reportOf(own.url)).report).toEqual({ status: "unavailable", reasons: ["schema"] });
  await own.destroy();
});

test("a schema of a newer version that took something away is not ready", async () => {
  const own = await createTestDatabase();
  await own.db("tallyhook_migrations").insert({ name: "9002_contract", needs: "9001_expand" });
  expect((await reportOf(own.url)).report).toEqual({ status: "unavailable", reasons: ["schema"] });
  await own.destroy();
});

test("without a database it says so in time", async () => {
  const url = new URL(database.directUrl);
  url.port = "1";
  const { report, ms } = await reportOf(url.href);
  expect(report).toEqual({ status: "unavailable", reasons: ["database", "schema"] });
  expect(ms).toBeLessThan(30_000);
});

test.each(["receiver.probes", "inbox.receipts", "inbox.progress"])(
  "a table that is locked (%s) takes no event, and leaves the answer in time",
  async (table) => {
    const { db, pool, close } = openConnections();
    // The time limit is for the lock, not for a first connection.
    await Promise.all([db.raw("select 1"), pool.query("select 1")]);
    const lock = await database.db.transaction();
    onTestFinished(async () => {
      await lock.rollback();
      await close();
    });
    await lock.raw("lock table ?? in access exclusive mode", [table]);
    const readiness = createReadiness({ db, pool, log: silent, degrading: [] });
    expect(await readiness()).toEqual({ status: "unavailable", reasons: ["database"] });
  },
);

test("asking a thousand times asks the database once", async () => {
  const { db, pool, close } = openConnections();
  let connects = 0;
  pool.on("acquire", () => (connects += 1));
  const readiness = createReadiness({ db, pool, log: silent, degrading: [] }, { cacheMs: 600_000 });
  const reports = await Promise.all(Array.from({ length: 1_000 }, () => readiness()));
  expect(new Set(reports).size).toBe(1);
  await readiness();
  expect(connects).toBe(1);
  await close();
});

test("a role that may not write the inbox is not ready", async () => {
  const own = await createTestDatabase();
  await own.db.raw("create role tallyhook_reader login password 'reader'");
  await own.db.raw(`grant usage on schema receiver, inbox, public to tallyhook_reader;
    grant select on all tables in schema public, receiver, inbox to tallyhook_reader;
    grant insert on receiver.probes, inbox.progress, inbox.seen to tallyhook_reader;
    grant usage on sequence inbox.event_numbers to tallyhook_reader`);
  const url = new URL(own.directUrl);
  [url.username, url.password] = ["tallyhook_reader", "reader"];
  const { report } = await reportOf(url.href);
  await own.db.raw("grant insert on inbox.receipts to tallyhook_reader");
  const granted = await reportOf(url.href);
  await own.db.raw("drop owned by tallyhook_reader; drop role tallyhook_reader");
  await own.destroy();
  expect(report).toEqual({ status: "unavailable", reasons: ["database"] });
  expect(granted.report).toEqual({ status: "ok", reasons: [] });
});
