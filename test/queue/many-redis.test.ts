import { describe, expect, onTestFinished, test } from "vitest";
import { createLog } from "../../src/platform/log.ts";
import { type JobQueue, QueueUnavailable, createJobQueue } from "../../src/queue/job-queue.ts";
import { examineRedis } from "../../src/queue/examine-redis.ts";
import { eventually } from "../support/eventually.ts";
import { redisAvailable } from "../support/redis.ts";
import { type ManyRedis, startRedisCluster, startWatchedRedis } from "../support/redis-many.ts";
import { untilAnswering } from "./backends.ts";

const log = createLog({ level: "silent", name: "test" });

interface Stage {
  producer: JobQueue;
  got: string[];
}

/** A producer, and a consumer of its own. */
async function onStage(
  redis: Pick<ManyRedis, "url">,
  use: (stage: Stage) => Promise<void>,
): Promise<void> {
  const [producer, consumer] = [0, 1].map(() =>
    createJobQueue({ log }, { kind: "redis", url: redis.url }),
  );
  if (producer === undefined || consumer === undefined) throw new Error("no queue was made");
  const got: string[] = [];
  consumer.consume("schedule", async ({ task }) => void got.push(task), { concurrency: 1 });
  try {
    await untilAnswering(producer);
    await use({ producer, got });
  } finally {
    await Promise.all([producer.close(), consumer.close()]);
  }
}

/** Resolves when a job goes through; those that a failover loses are sent again, as the relay does. */
async function untilWorking({ producer, got }: Stage, task: string): Promise<void> {
  await eventually("a job goes through", async () => {
    await producer.add("schedule", { task });
    return eventually("it arrives", () => got.includes(task), { withinMs: 500 });
  });
}

describe.skipIf(!redisAvailable)("the job queue behind a Sentinel", () => {
  test("refuses while there is no master, and goes on by itself with the next one", async () => {
    const redis = await startWatchedRedis({
      password: "of+the/servers",
      sentinelPassword: "of:the/Sentinel",
    });
    onTestFinished(() => redis.destroy());
    await onStage(redis, async (stage) => {
      await untilWorking(stage, "1");
      expect(await examineRedis(redis.url)).toMatchObject({
        kind: "sentinel",
        servers: [{ mode: "standalone", role: "master", replicas: 1, memoryPolicy: "noeviction" }],
        sentinels: [{ error: null, hasQuorum: true, replicas: 1 }],
      });
      const wrong = redis.url.replace("sentinel_password=", "sentinel_password=no");
      expect((await examineRedis(wrong)).sentinels).toMatchObject([{ error: "WRONGPASS" }]);
      const first = await redis.queueOwner();
      await first.kill9();
      await expect(stage.producer.ping()).rejects.toThrow(QueueUnavailable);
      await untilAnswering(stage.producer);
      expect(await redis.queueOwner()).not.toBe(first);
      await untilWorking(stage, "2");
    });
  });
});

describe.skipIf(!redisAvailable)("the job queue on a Redis Cluster", () => {
  test("works by whichever node the URL names, also one that does not have the queue", async () => {
    const redis = await startRedisCluster();
    onTestFinished(() => redis.destroy());
    expect(await examineRedis(redis.url)).toMatchObject({
      servers: [0, 1, 2].map(() => ({ mode: "cluster", role: "master", replicas: 0 })),
      cluster: { isUp: true, slotsServed: 16_384 },
    });
    const owner = await redis.queueOwner();
    const others = redis.servers.filter((server) => server !== owner);
    for (const [index, { port }] of others.entries()) {
      await onStage({ url: `redis+cluster://127.0.0.1:${port}` }, async (stage) => {
        await untilWorking(stage, String(index + 1));
        await stage.producer.upsertSchedule("tick", { everyMs: 60_000 });
        expect(await stage.producer.hasSchedule("tick", { everyMs: 60_000 })).toBe(true);
      });
    }
  });
});
