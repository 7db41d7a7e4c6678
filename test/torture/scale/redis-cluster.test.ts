import { afterAll, describe, expect, inject, test } from "vitest";
import { faultless } from "../../e2e/audit.ts";
import { killPrograms } from "../../e2e/program.ts";
import { redisAvailable } from "../../support/redis.ts";
import { startRedisCluster } from "../../support/redis-many.ts";
import { killed, runFailovers, stopped } from "./failover-run.ts";

afterAll(killPrograms);

describe.skipIf(!redisAvailable)("a cluster of three masters and three replicas under load", () => {
  test("loses and doubles nothing when the owner of the queue is killed and stopped", async () => {
    const redis = await startRedisCluster({ masters: 3, replicas: 1 });
    try {
      const { audit, ...report } = await runFailovers({
        seed: process.env["TORTURE_SEED"] ?? "torture",
        redis,
        eventsPerSecond: 150,
        failovers: inject("isShort") ? [killed(redis)] : [killed(redis), stopped(redis), killed(redis), stopped(redis)],
      });
      console.log(JSON.stringify({ redis: "cluster", ...report }));
      expect(audit).toEqual(faultless);
      expect(report).toMatchObject({ refused503: 0, brokenConnections: 0 });
    } finally {
      await redis.destroy();
    }
  });
});
