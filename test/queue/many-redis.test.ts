import { describe, expect, onTestFinished, test } from "vitest";
import { createLog } from "../../src/platform/log.ts";
import { type JobQueue, QueueUnavailable, createJobQueue } from "../../src/core/queue/job-queue.ts";
import { examineRedis } from "../../src/core/queue/examine-redis.ts";
import { redisAvailable } from "../support/redis.ts";
import { type ManyRedis, startRedisCluster, startWatchedRedis } from "../support/redis-many.ts";
import { untilAnswering, untilWorking } from "./backends.ts";

const log = createLog({ level: "silent", name: "test" });

/** A producer, and a consumer of its own. */
async function onStage(redis: Pick<ManyRedis, "url">, use: (producer: JobQueue) => Promise<void>): Promise<void> {
  const [producer, consumer] = [0, 1].map(() => createJobQueue({ log }, { kind: "redis", url: redis.url }));
  if (producer === undefined || consumer === undefined) throw new Error("no queue was made");
  consumer.consume(() => {});
  try {
    await untilAnswering(producer);
    await use(producer);
  } finally {
    await Promise.all([producer.close(), consumer.close()]);
  }
}

describe.skipIf(!redisAvailable)("the job queue behind a Sentinel", () => {
  test("refuses while there is no master, and goes on by itself with the next one", async () => {
    const redis = await startWatchedRedis({
      password: "of+the/servers",
      sentinelPassword: "of:the/Sentinel",
    });
    onTestFinished(() => redis.destroy());
    await onStage(redis, async (producer) => {
      await untilWorking(producer);
      expect(await examineRedis(redis.url)).toMatchObject({
        kind: "sentinel",
        servers: [{ mode: "standalone", role: "master", replicas: 1, memoryPolicy: "noeviction" }],
        sentinels: [{ error: null, hasQuorum: true, replicas: 1 }],
      });
      const wrong = redis.url.replace("sentinel_password=", "sentinel_password=no");
      expect((await examineRedis(wrong)).sentinels).toMatchObject([{ error: "WRONGPASS" }]);
      const first = await redis.queueOwner();
      await first.kill9();
      await expect(producer.add()).rejects.toThrow(QueueUnavailable);
      await untilWorking(producer);
      expect(await redis.queueOwner()).not.toBe(first);
      await untilWorking(producer);
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
    for (const { port } of others) {
      await onStage({ url: `redis+cluster://127.0.0.1:${port}` }, async (producer) => {
        await untilWorking(producer);
      });
    }
  });
});
