import { afterAll, describe, expect, test } from "vitest";
import { faultless } from "../../e2e/audit.ts";
import { killPrograms } from "../../e2e/program.ts";
import { redisAvailable } from "../../support/redis.ts";
import { startWatchedRedis } from "../../support/redis-many.ts";
import { changed, killed, runFailovers, stopped } from "./failover-run.ts";

afterAll(killPrograms);

describe.skipIf(!redisAvailable)("three Sentinels, a master and two replicas under load", () => {
  test("lose and double nothing when the master is killed and stopped, twice each, and when it is changed", async () => {
    const redis = await startWatchedRedis({
      replicas: 2,
      sentinels: 3,
      password: "of+the/servers",
    });
    try {
      const { audit, ...report } = await runFailovers({
        seed: process.env["TORTURE_SEED"] ?? "torture",
        redis,
        eventsPerSecond: 150,
        failovers: [killed(redis), stopped(redis), killed(redis), stopped(redis), changed(redis)],
      });
      console.log(JSON.stringify({ redis: "sentinel", ...report }));
      expect(audit).toEqual(faultless);
      expect(report).toMatchObject({ refused503: 0, brokenConnections: 0 });
    } finally {
      await redis.destroy();
    }
  });
});
