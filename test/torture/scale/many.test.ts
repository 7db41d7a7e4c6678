import { afterEach, expect, inject, test } from "vitest";
import { faultless } from "../../e2e/audit.ts";
import { killPrograms } from "../../e2e/program.ts";
import { debianPostgresInstalled, startDebianPostgres } from "../../support/debian-postgres.ts";
import { eventually } from "../../support/eventually.ts";
import { pgbouncerInstalled, startPgBouncer } from "../../support/pgbouncer.ts";
import { redisInstalled } from "../../support/redis.ts";
import { startWatchedRedis } from "../../support/redis-many.ts";
import { type ManyPlan, type ManyReport, runMany } from "./many-run.ts";

const seed = process.env["TORTURE_SEED"] ?? "torture";
/** In the short form as many processes and events as two CPUs keep up with: a backlog would only be waited for. */
const [receivers, workers, defaultSeconds, defaultRate] = inject("isShort") ? [2, 3, 1, 60] : [4, 4, 600, 200];
const seconds = Number(process.env["TORTURE_SECONDS"] ?? defaultSeconds);
const eventsPerSecond = Number(process.env["TORTURE_EVENTS_PER_SECOND"] ?? defaultRate);
const load = { seconds, receivers, workers, eventsPerSecond, outlastsTransactions: !inject("isShort") };

afterEach(killPrograms);

function assertNothingWrong({ numbers, ...found }: ManyReport, queue: string): void {
  console.log(JSON.stringify({ queue, seconds, ...numbers, deadlocks: found.deadlocks }));
  expect(found).toEqual({ audit: faultless, deadlocks: 0, complaints: [] });
}

/** The standby is away for as long as one flush may take, and comes back. */
const standbyAway =
  ({ postgres }: Pick<ManyPlan, "postgres">): ManyPlan["faults"][string] =>
  async ({ counts, whenAcknowledged }) => {
    const refused = counts().refused503;
    postgres.freezeStandby();
    try {
      await eventually("events are refused", () => counts().refused503 > refused + 20);
    } finally {
      postgres.thawStandby();
    }
    await whenAcknowledged(10);
  };

test.runIf(debianPostgresInstalled && pgbouncerInstalled)(
  `${receivers} receivers and ${workers} workers behind PgBouncer, queue on PostgreSQL: nothing is lost or doubled, and no deadlock`,
  async () => {
    const postgres = await startDebianPostgres();
    const pooler = await startPgBouncer(postgres.url, "transaction", { default_pool_size: 40 });
    try {
      const report = await runMany({
        seed: `${seed} postgres`,
        ...load,
        postgres,
        pooledUrl: pooler.url,
        redisUrl: null,
        faults: { "the standby is away": standbyAway({ postgres }) },
      });
      assertNothingWrong(report, "postgres");
    } finally {
      await killPrograms();
      await pooler.stop();
      await postgres.destroy();
    }
  },
  (seconds + 600) * 1_000,
);

test.runIf(debianPostgresInstalled && redisInstalled)(
  `${receivers} receivers and ${workers} workers, queue behind Sentinels whose master is stopped: nothing is lost or doubled, and no deadlock`,
  async () => {
    const postgres = await startDebianPostgres();
    const redis = await startWatchedRedis({ replicas: 1, sentinels: 3 });
    try {
      const report = await runMany({
        seed: `${seed} redis`,
        ...load,
        postgres,
        pooledUrl: null,
        redisUrl: redis.url,
        faults: {
          "the master of Redis is stopped": async ({ whenAcknowledged }) => {
            const master = await redis.queueOwner();
            master.pause();
            await redis.isTakenOver(master);
            await whenAcknowledged(10);
            master.resume();
            await redis.isReplicated();
          },
        },
      });
      assertNothingWrong(report, "redis");
    } finally {
      await killPrograms();
      await redis.destroy();
      await postgres.destroy();
    }
  },
  (seconds + 600) * 1_000,
);
