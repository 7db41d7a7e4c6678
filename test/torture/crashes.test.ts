import { afterAll, describe, expect, test } from "vitest";
import { faultless } from "../e2e/audit.ts";
import { type CrashPlan, type CrashReport, runCrashes } from "../e2e/crash-run.ts";
import { killPrograms } from "../e2e/program.ts";
import { redisAvailable, startRedis } from "../support/redis.ts";

/** Another base gives other events, victims and moments; a round's seed repeats that round. */
const baseSeed = process.env["TORTURE_SEED"] ?? "torture";
const rounds = Number(process.env["TORTURE_ROUNDS"] ?? 10);
/** Ten rounds make a hundred of each of the first three. */
const kills = { receiver: 10, worker: 10, postgres: 10, backend: 3 };

afterAll(killPrograms);

describe.each([
  { queue: "postgres", isAvailable: true },
  { queue: "redis", isAvailable: redisAvailable },
])("kill -9 under load, queue on $queue", ({ queue, isAvailable }) => {
  const reports: CrashReport[] = [];
  afterAll(() => {
    if (reports.length > 0) console.log(JSON.stringify({ queue, ...totalOf(reports) }));
  });

  test.skipIf(!isAvailable).each(Array.from({ length: rounds }, (_, n) => `${baseSeed} ${n + 1}`))(
    "loses nothing, doubles nothing, ends equal to the model: seed %s",
    async (seed) => {
      const report = await run({ seed, kills, workers: 2 }, queue === "redis");
      reports.push(report);
      const { audit, ...numbers } = report;
      console.log(JSON.stringify({ queue, ...numbers }));
      expect(audit).toEqual(faultless);
      expect(report.slowestAnswerMs).toBeLessThan(10_000);
    },
  );
});

async function run(plan: CrashPlan, onRedis: boolean): Promise<CrashReport> {
  if (!onRedis) return runCrashes(plan);
  const redis = await startRedis();
  try {
    return await runCrashes({ ...plan, redisUrl: redis.url });
  } finally {
    await redis.stop();
  }
}

function totalOf(reports: readonly CrashReport[]) {
  const sum = (pick: (report: CrashReport) => number): number =>
    reports.reduce((total, report) => total + pick(report), 0);
  const most = (pick: (report: CrashReport) => number): number => Math.max(...reports.map(pick));
  return {
    rounds: reports.length,
    receiver: sum(({ killed }) => killed.receiver),
    worker: sum(({ killed }) => killed.worker),
    postgres: sum(({ killed }) => killed.postgres),
    backend: sum(({ killed }) => killed.backend),
    acknowledged: sum(({ acknowledged }) => acknowledged),
    committedUnanswered: sum(({ committedUnanswered }) => committedUnanswered),
    refused503: sum(({ refused503 }) => refused503),
    brokenConnections: sum(({ brokenConnections }) => brokenConnections),
    missing: sum(({ audit }) => audit.missing.length),
    slowestAnswerMs: most(({ slowestAnswerMs }) => slowestAnswerMs),
    longestDrainMs: most(({ drainMs }) => drainMs),
    seconds: Math.round(sum(({ seconds }) => seconds)),
  };
}
