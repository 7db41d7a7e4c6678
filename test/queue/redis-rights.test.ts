import { Redis } from "ioredis";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { wallClock } from "../../src/platform/clock.ts";
import { createRateLimitedWarnings, logConsole } from "../../src/platform/rate-limited-warnings.ts";
import { createLog } from "../../src/platform/log.ts";
import { examineRedis } from "../../src/core/queue/examine-redis.ts";
import { JobNotTaken, type JobQueue, createJobQueue } from "../../src/core/queue/job-queue.ts";
import { codeBlocksOf } from "../docs/code-blocks.ts";
import { eventually } from "../support/eventually.ts";
import { redisAvailable, startRedis } from "../support/redis.ts";

/** What docs/operations.md tells to give. */
const [told] = codeBlocksOf("docs/operations.md").filter(({ language }) => language === "redis");
const leastRights = told?.text.trim().split(" >PASSWORD ")[1]?.split(" ") ?? [];

async function onRedisAs(
  rights: readonly string[],
  use: (given: { queue: JobQueue; url: string; lines: string[]; admin: Redis }) => Promise<void>,
): Promise<void> {
  const redis = await startRedis();
  const admin = new Redis(redis.url);
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const log = createLog({ level: "info", name: "test", destination });
  onTestFinished(logConsole(createRateLimitedWarnings({ log, clock: wallClock })));
  await admin.call("ACL", "SETUSER", "shop", "on", ">secret", ...rights);
  const url = redis.url.replace("redis://", "redis://shop:secret@");
  const queue = createJobQueue({ log }, { kind: "redis", url });
  try {
    await use({ queue, url, lines, admin });
  } finally {
    await queue.close();
    admin.disconnect();
    await redis.stop();
  }
}

describe.skipIf(!redisAvailable)("a user of Redis", () => {
  test.each([
    ["everything but what is dangerous, so not INFO", ["~*", "&*", "+@all", "-@dangerous"]],
    ["the least", leastRights],
  ])("with %s gets its jobs, and no library prints anything", async (_, rights) => {
    const printed = vi.spyOn(process.stderr, "write");
    onTestFinished(() => printed.mockRestore());
    await onRedisAs(rights, async ({ queue, url, lines, admin }) => {
      let jobs = 0;
      queue.consume(() => void jobs++);
      await queue.add();
      await eventually("the job", () => jobs === 1);
      await queue.roundTrip();
      // New connections ask again for what the user may not know.
      await admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
      await eventually("a job comes back", () => queue.roundTrip().then(() => true));
      expect(await queue.depth()).toMatchObject({ waiting: 0, failed: 0 });
      expect(printed.mock.calls).toEqual([]);
      const warnings = lines.filter((line) => line.includes("a library printed a line"));
      expect(warnings.length).toBeLessThanOrEqual(1);
      expect(await examineRedis(url)).toMatchObject({ servers: [], isRefused: true });
    });
  });

  test("that may not wait for jobs is an outage of the worker, told once, though jobs are accepted", async () => {
    await onRedisAs(["~*", "&*", "+@all", "-bzpopmin"], async ({ queue, lines, admin }) => {
      let jobs = 0;
      queue.consume(() => void jobs++);
      const told = () => lines.filter((line) => line.includes("no job can be taken"));
      await eventually("it is told", () => told().length > 0);
      await queue.add();
      await expect(queue.roundTrip({ withinMs: 500 })).rejects.toThrow(JobNotTaken);
      expect(jobs).toBe(0);
      expect(told()).toHaveLength(1);
      expect(lines.join("")).not.toContain("again");
      await admin.call("ACL", "SETUSER", "shop", "+bzpopmin");
      await eventually("the job", () => jobs > 0);
      expect(lines.at(-1)).toContain("jobs are taken from the queue again");
    });
  });
});
