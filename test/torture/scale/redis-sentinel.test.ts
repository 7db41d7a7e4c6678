import { afterAll, describe, expect, test } from "vitest";
import { faultless } from "../../e2e/audit.ts";
import { killPrograms } from "../../e2e/program.ts";
import { redisAvailable } from "../../support/redis.ts";
import { startWatchedRedis } from "../../support/redis-many.ts";
import { runFailovers } from "./failover-run.ts";

afterAll(killPrograms);

describe.skipIf(!redisAvailable)("three Sentinels, a master and two replicas under load", () => {
  test("lose and double nothing when the master is killed, twice, and when it is changed", async () => {
    const redis = await startWatchedRedis({
      replicas: 2,
      sentinels: 3,
      password: "of+the/servers",
    });
    const killed = {
      name: "kill -9 of the master",
      run: async () => {
        const master = await redis.queueOwner();
        await master.kill9();
        await redis.isTakenOver(master);
        await master.restart();
      },
    };
    try {
      const { audit, ...report } = await runFailovers({
        seed: process.env["TORTURE_SEED"] ?? "torture",
        redisUrl: redis.url,
        eventsPerSecond: 150,
        failovers: [killed, killed, { name: "SENTINEL FAILOVER", run: () => redis.failOver() }],
      });
      console.log(JSON.stringify({ redis: "sentinel", ...report }));
      expect(audit).toEqual(faultless);
      expect(report).toMatchObject({ refused503: 0, brokenConnections: 0 });
    } finally {
      await redis.destroy();
    }
  });
});
