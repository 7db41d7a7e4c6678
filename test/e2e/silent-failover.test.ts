import { request } from "undici";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { migrateQueueSchema } from "../../src/core/queue/backend.ts";
import { seededRandom } from "../../src/platform/random.ts";
import { type StallingProxy, startStallingProxy } from "../receiver/stalling-proxy.ts";
import { type TestDatabase, createTestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { untilWaiting } from "../support/until-waiting.ts";
import { audit, faultless } from "./audit.ts";
import { layOutDeployment, webhookSecret } from "./deployment.ts";
import { createHistory } from "./history.ts";
import { settledFromNow, storedAreSettled } from "./inbox-progress.ts";
import { killPrograms, runTallyhook } from "./program.ts";
import { type Sender, startSender } from "./sender.ts";

let database: TestDatabase;
let proxy: StallingProxy;
let sender: Sender | undefined;
beforeAll(async () => {
  database = await createTestDatabase({ poolMax: 4 });
  await migrateQueueSchema(database.url);
  proxy = await startStallingProxy(database.url);
});
afterAll(async () => {
  await sender?.abort();
  await killPrograms();
  await proxy.close();
  await database.destroy();
});

// A minute of waiting; that a connection is given up is shown by test/platform/postgres/pool.test.ts, too.
test.runIf(inject("isTorture"))(
  "open connections that fall silent for good, while new ones work, hold nothing up for good",
  async () => {
    const history = createHistory(seededRandom("silent failover"));
    const deployment = await layOutDeployment({ databaseUrl: proxy.url });
    const worker = runTallyhook(["worker"], {
      ...deployment.environment,
      DATABASE_SILENCE_SECONDS: "10",
    });
    await worker.printed("the worker runs");
    const programs = [await deployment.startReceiver(), worker];
    sender = startSender(
      { history, random: seededRandom("silent failover") },
      { url: deployment.webhooksUrl, secret: webhookSecret, eventsPerSecond: 50 },
    );
    await sender.whenAcknowledged(100);
    await settledFromNow(database.db, { withinMs: 40_000 });
    const isReady = async () => (await fetch(deployment.readyUrl)).status === 200;
    expect(await isReady()).toBe(true);

    proxy.strand();
    await sender.whenAcknowledged(50, 60_000);
    await eventually("readyz says ok", isReady, { withinMs: 60_000 });
    // The system itself would give the old connections up after a quarter of an hour.
    await settledFromNow(database.db, { withinMs: 120_000 });
    await sender.finish();
    await storedAreSettled(database.db, 120_000);
    expect(await audit(database.db, sender.acknowledged, history.model)).toEqual(faultless);
    expect(programs.map((program) => program.isRunning())).toEqual([true, true]);
  },
  300_000,
);

test("a receiver that is to stop closes its port before it waits for the database", async () => {
  const deployment = await layOutDeployment({ databaseUrl: database.url });
  const receiver = await deployment.startReceiver();
  const post = async () => {
    const { statusCode, body } = await request(deployment.webhooksUrl, { method: "POST" });
    await body.dump();
    return statusCode;
  };
  // Its next count of answers has something to write, and cannot.
  const lock = await database.db.transaction();
  await lock.raw("lock table receiver.answers_by_minute in access exclusive mode");
  expect(await post()).toBe(401);
  await untilWaiting(database.db);
  const exited = receiver.stop();
  await eventually("the port is closed", () =>
    post().then(
      () => false,
      () => true,
    ),
  );
  expect(receiver.output()).not.toContain('"loop":"answers"');
  await lock.rollback();
  expect(await exited).toEqual({ code: 0, signal: null });
});
