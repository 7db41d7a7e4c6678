import { Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { createLog } from "../../src/platform/log.ts";
import { type JobQueue, QueueUnavailable, createJobQueue } from "../../src/core/queue/job-queue.ts";
import { type StallingProxy, startStallingProxy } from "../receiver/stalling-proxy.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/free-port.ts";
import { redisAvailable, startRedis } from "../support/redis.ts";
import { untilWaiting } from "../support/until-waiting.ts";
import { type TestBackend, startPostgresBackend, testBackends, untilAnswering } from "./backends.ts";

const log = createLog({ level: "silent", name: "test" });

async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return (performance.now() - started) / 1_000;
}

interface Line {
  readonly queue: JobQueue;
  /** Between the queue and its backend. */
  readonly proxy: StallingProxy;
}

/** A queue on a backend of its own, since the tests, which do nothing but wait, run side by side. */
async function onLine(
  start: () => Promise<TestBackend>,
  use: (line: Line, backend: TestBackend) => Promise<void>,
): Promise<void> {
  const backend = await start();
  const proxy = await startStallingProxy(backend.location.url);
  const queue = createJobQueue({ log }, { ...backend.location, url: proxy.url });
  try {
    await use({ queue, proxy }, backend);
  } finally {
    proxy.resume();
    await queue.close();
    await proxy.close();
    await backend.destroy();
  }
}

describe.concurrent.each(testBackends)("an outage of the job queue on $name", ({ start }) => {
  test.each(["cut", "stall"] as const)(
    "is told of within about two seconds when the line is %s, and is over when it is back",
    (outage) =>
      onLine(start, async ({ queue, proxy }) => {
        await untilAnswering(queue);
        proxy[outage]();
        const calls = [() => queue.add(), () => queue.depth(), () => queue.roundTrip()];
        const seconds = await secondsOf(() =>
          Promise.all(calls.map((call) => expect(call()).rejects.toThrow(QueueUnavailable))),
        );
        expect(seconds).toBeLessThan(5);
        proxy.resume();
        await untilAnswering(queue);
        await queue.add();
      }),
  );

  test("that was there from the start is told of, and work begins when it is over", () =>
    onLine(start, async ({ queue, proxy }) => {
      proxy.cut();
      let jobs = 0;
      queue.consume(() => void jobs++);
      const seconds = await secondsOf(() => expect(queue.add()).rejects.toThrow(QueueUnavailable));
      expect(seconds).toBeLessThan(5);
      proxy.resume();
      await untilAnswering(queue);
      await queue.add();
      await eventually("the consumer gets the job", () => jobs > 0);
    }));

  test("a consumer works again by itself afterwards", () =>
    onLine(start, async ({ queue, proxy }) => {
      let jobs = 0;
      queue.consume(() => void jobs++);
      await untilAnswering(queue);
      await queue.add();
      await eventually("a job before", () => jobs > 0);
      proxy.cut();
      await expect(queue.add()).rejects.toThrow(QueueUnavailable);
      proxy.resume();
      await untilAnswering(queue);
      const before = jobs;
      await queue.add();
      await eventually("a job afterwards", () => jobs > before);
    }));

  test(
    "connections that fall silent for good are given up, and producer and consumer go on over new ones",
    () =>
      onLine(start, async ({ queue, proxy }) => {
        let jobs = 0;
        queue.consume(() => void jobs++);
        await untilAnswering(queue);
        await queue.add();
        await eventually("a job before", () => jobs > 0);
        // New connections pass: as after a failover that nobody was told of.
        proxy.strand();
        await eventually("the producer is back", () => queue.add().then(() => true), {
          withinMs: 60_000,
        });
        const before = jobs;
        await queue.add();
        await eventually("the consumer is back", () => jobs > before, { withinMs: 60_000 });
      }),
    150_000,
  );

  test.each(["cut", "stall"] as const)("does not hold up closing when the line is %s", (outage) =>
    onLine(start, async ({ queue, proxy }) => {
      queue.consume(() => {});
      await untilAnswering(queue);
      proxy[outage]();
      expect(await secondsOf(() => queue.close())).toBeLessThan(15);
    }),
  );
});

describe.skipIf(!redisAvailable)("a Redis that answers and takes no jobs", () => {
  test.each([
    ["is full", ["maxmemory", "1"], ["maxmemory", "0"]],
    ["lacks the replicas it must have", ["min-replicas-to-write", "1"], ["min-replicas-to-write", "0"]],
  ] as const)("because it %s is an outage, told of once, until it takes one", async (_, on, off) => {
    const redis = await startRedis();
    const admin = new Redis(redis.url);
    const lines: string[] = [];
    const destination = { write: (line: string) => void lines.push(line) };
    const loud = createLog({ level: "info", name: "test", destination });
    const queue = createJobQueue({ log: loud }, { kind: "redis", url: redis.url });
    try {
      await untilAnswering(queue);
      lines.length = 0;
      await admin.config("SET", ...on);
      for (let n = 0; n < 3; n++) await expect(queue.add()).rejects.toThrow(QueueUnavailable);
      await expect(queue.add()).rejects.toThrow(QueueUnavailable);
      await untilAnswering(queue);
      expect(lines).toHaveLength(1);
      await admin.config("SET", ...off);
      await eventually("it takes jobs", () => queue.add().then(() => true));
      expect(lines[1]).toContain("the job queue answers again");
    } finally {
      await queue.close();
      admin.disconnect();
      await redis.stop();
    }
  });

  test("because it is a replica now is an outage, after which producer and consumer go on", async () => {
    const redis = await startRedis();
    const admin = new Redis(redis.url);
    const queue = createJobQueue({ log }, { kind: "redis", url: redis.url });
    let jobs = 0;
    queue.consume(() => void jobs++);
    try {
      await untilAnswering(queue);
      await admin.replicaof("127.0.0.1", 1);
      await expect(queue.add()).rejects.toThrow(QueueUnavailable);
      await admin.replicaof("NO", "ONE");
      await untilAnswering(queue);
      await queue.add();
      await eventually("the consumer gets the job", () => jobs > 0);
    } finally {
      await queue.close();
      admin.disconnect();
      await redis.stop();
    }
  });

  test("and was not there for a while keeps no connection from that time", async () => {
    const port = await freePort();
    const queue = createJobQueue({ log }, { kind: "redis", url: `redis://127.0.0.1:${port}` });
    for (let n = 0; n < 5; n++) await expect(queue.add()).rejects.toThrow(QueueUnavailable);
    const redis = await startRedis({ port });
    const admin = new Redis(redis.url);
    try {
      await untilAnswering(queue);
      // Those of before would come back within a second.
      await new Promise((resolve) => setTimeout(resolve, 1_200));
      const lines = ((await admin.client("LIST")) as string).trim().split("\n");
      expect(lines).toHaveLength(2);
    } finally {
      await queue.close();
      admin.disconnect();
      await redis.stop();
    }
  });
});

test("a PostgreSQL that only reads is an outage", async () => {
  const { location, destroy } = await startPostgresBackend();
  const url = new URL(location.url);
  url.searchParams.set("options", "-c default_transaction_read_only=on");
  const queue = createJobQueue({ log }, { kind: "postgres", url: url.href });
  try {
    await expect(queue.depth()).resolves.toMatchObject({ waiting: 0 });
    await expect(queue.add()).rejects.toThrow(QueueUnavailable);
  } finally {
    await queue.close();
    await destroy();
  }
});

test("a connection that breaks while BullMQ makes it ready costs that attempt alone", () =>
  onLine(startPostgresBackend, async ({ queue, proxy }, { location }) => {
    const db = createDatabase({ url: location.url, poolMax: 2, applicationName: "test" });
    // Holds the first contact of each instance where its connection is checked out.
    const trx = await db.transaction();
    await trx.raw("lock table bullmq.migration in access exclusive mode");
    let jobs = 0;
    queue.consume(() => void jobs++);
    await untilWaiting(db);
    proxy.cut();
    await trx.rollback();
    await db.destroy();
    // An error event that nobody listens to is an uncaught exception, with which the run fails.
    await expect(queue.add()).rejects.toThrow(QueueUnavailable);
    proxy.resume();
    await untilAnswering(queue);
    await queue.add();
    await eventually("the consumer gets the job", () => jobs > 0);
  }));
