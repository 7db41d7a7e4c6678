import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { createLog } from "../../src/platform/log.ts";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { seededRandom, systemRandom } from "../../src/platform/random.ts";
import { createServiceClock, wallClock } from "../../src/platform/clock.ts";
import { type JobQueue, createJobQueue } from "../../src/core/queue/job-queue.ts";
import { createServiceClient } from "../../src/core/client/service-client.ts";
import { defaultEnvelopePaths } from "../../src/core/contract/event-envelope.ts";
import { defaultWorkerOptions, startWorker } from "../../src/core/worker/start-worker.ts";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { testAlertContext, toldTo } from "../alerts/test-alert-context.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { type RedisServer, redisAvailable, startRedis } from "../support/redis.ts";
import { audit, faultless } from "./audit.ts";
import { type Deployment, layOutDeployment, webhookSecret } from "./deployment.ts";
import { createHistory } from "./history.ts";
import { settledFromNow, storedAreSettled } from "./inbox-progress.ts";
import { killPrograms } from "./program.ts";
import { type Sender, startSender } from "./sender.ts";

/** One deployment, always under load, goes through these one after the other. */
describe.skipIf(!redisAvailable)("a deployment on Redis under load", () => {
  const history = createHistory(seededRandom("redis outages"));
  let redisPort: number;
  let redis: RedisServer | undefined;
  let database: TestDatabase;
  let deployment: Deployment;
  let sender: Sender;
  let clockwork: Clockwork;

  beforeAll(async () => {
    redisPort = await freePort();
    database = await createTestDatabase();
    const redisUrl = `redis://127.0.0.1:${redisPort}`;
    deployment = await layOutDeployment({ databaseUrl: database.url, redisUrl });
    await Promise.all([deployment.startReceiver(), deployment.startWorker()]);
    // Its own database of the same Redis: it shares the outages and takes no work away.
    clockwork = startClockwork({ databaseUrl: database.url, redisUrl: `${redisUrl}/1` });
    sender = startSender(
      { history, random: seededRandom("redis outages") },
      {
        url: deployment.webhooksUrl,
        secret: webhookSecret,
        eventsPerSecond: inject("isTorture") ? 100 : 25,
      },
    );
  });

  afterAll(async () => {
    await sender?.abort();
    await clockwork?.close();
    await killPrograms();
    await redis?.stop();
    await database?.destroy();
  });

  const readiness = async (): Promise<{ code: number; status: string; reasons: string[] }> => {
    const answer = await fetch(deployment.readyUrl);
    const body = (await answer.json()) as { status: string; reasons: string[] };
    return { code: answer.status, ...body };
  };

  test("without Redis from the start: accepts, says degraded, and the relay applies", async () => {
    expect(await readiness()).toEqual({ code: 200, status: "degraded", reasons: ["queue"] });
    await sender.whenAcknowledged(100);
    await settledFromNow(database.db, { withinMs: 20_000 });
    expect(sender.counts.refused503).toBe(0);
  });

  test("when Redis comes, the queue and the schedules work without a restart", async () => {
    redis = await startRedis({ port: redisPort });
    await Promise.all([
      eventually("readyz says ok", async () => (await readiness()).status === "ok", {
        withinMs: 20_000,
      }),
      // The relay alone would leave an event for five seconds.
      settledFromNow(database.db, { withinMs: 20_000, afterArrivalMs: 1_000 }),
      clockwork.ticksAgain(),
    ]);
  });

  test("flushed again and again: everything is applied within a minute, schedules come back", async () => {
    for (let flush = 0; flush < 3; flush++) {
      await sender.whenAcknowledged(60);
      await redis?.flush();
    }
    const flushedMs = await storedAreSettled(database.db, 60_000);
    expect(flushedMs).toBeLessThan(60_000);
    await Promise.all([
      settledFromNow(database.db, { withinMs: 20_000, afterArrivalMs: 1_000 }),
      clockwork.ticksAgain(),
    ]);
    expect(await readiness()).toMatchObject({ status: "ok" });
  });

  test("crashed and started empty: the queue works again", async () => {
    await sender.whenAcknowledged(60);
    await redis?.stop();
    await sender.whenAcknowledged(60);
    redis = await startRedis({ port: redisPort });
    await settledFromNow(database.db, { withinMs: 20_000, afterArrivalMs: 1_000 });
  });

  test("and after all of it, the mirror equals the model and no event was refused", async () => {
    await sender.finish();
    await storedAreSettled(database.db);
    expect(await audit(database.db, sender.acknowledged, history.model)).toEqual(faultless);
    expect(sender.counts).toMatchObject({ refused503: 0, brokenConnections: 0 });
  });
});

interface Clockwork {
  /** Resolves when a schedule has run after this call. */
  ticksAgain(): Promise<void>;
  close(): Promise<void>;
}

/** A worker with a schedule; the commands have none so far. */
function startClockwork(location: { databaseUrl: string; redisUrl: string }): Clockwork {
  let ticks = 0;
  const log = createLog({ level: "silent", name: "test" });
  const url = location.databaseUrl;
  const db = createDatabase({ url, poolMax: 3, applicationName: "tallyhook test worker" });
  const queue: JobQueue = createJobQueue({ log }, { kind: "redis", url: location.redisUrl });
  const client = createServiceClient({
    baseUrl: "http://127.0.0.1:9",
    apiKey: "svc_test_sk_unused",
    log,
    wallClock,
    serviceClock: createServiceClock(wallClock),
    random: systemRandom,
  });
  const tick = { schedule: { everyMs: 300 }, run: async () => void ticks++ };
  const worker = startWorker(
    {
      db,
      queue,
      client,
      log,
      random: systemRandom,
      places: defaultEnvelopePaths,
      ...toldTo(testAlertContext()),
      missingGraceMs: 0,
      foreignAccount: async () => null,
    },
    { ...defaultWorkerOptions, tasks: { tick } },
  );
  return {
    async ticksAgain() {
      const before = ticks;
      await eventually("the schedule runs", () => ticks > before, { withinMs: 30_000 });
    },
    async close() {
      await worker.close();
      await queue.close();
      await client.close();
      await db.destroy();
    },
  };
}
