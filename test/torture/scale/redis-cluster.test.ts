import { afterAll, describe, expect, test } from "vitest";
import { faultless } from "../../e2e/audit.ts";
import { killPrograms } from "../../e2e/program.ts";
import { redisAvailable } from "../../support/redis.ts";
import { startRedisCluster } from "../../support/redis-many.ts";
import { runFailovers } from "./failover-run.ts";

afterAll(killPrograms);

describe.skipIf(!redisAvailable)("a cluster of three masters and three replicas under load", () => {
  test("loses and doubles nothing when the owner of the queue is killed, twice", async () => {
    const redis = await startRedisCluster({ masters: 3, replicas: 1 });
    const killed = {
      name: "kill -9 of the queue's owner",
      run: async () => {
        const owner = await redis.queueOwner();
        await owner.kill9();
        await redis.isTakenOver(owner);
        await owner.restart();
      },
    };
    try {
      const { audit, ...report } = await runFailovers({
        seed: process.env["TORTURE_SEED"] ?? "torture",
        redisUrl: redis.url,
        eventsPerSecond: 150,
        failovers: [killed, killed],
      });
      console.log(JSON.stringify({ redis: "cluster", ...report }));
      expect(audit).toEqual(faultless);
      expect(report).toMatchObject({ refused503: 0, brokenConnections: 0 });
    } finally {
      await redis.destroy();
    }
  });
});
