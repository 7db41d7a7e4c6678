import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createLog } from "../../src/platform/log.ts";
import { createJobQueue, QueueUnavailable } from "../../src/queue/job-queue.ts";
import type { JobQueue } from "../../src/queue/job-queue.ts";
import { startStallingProxy } from "../receiver/stalling-proxy.ts";
import type { StallingProxy } from "../receiver/stalling-proxy.ts";
import { eventually } from "../support/eventually.ts";
import { testBackends, untilAnswering } from "../queue/backends.ts";
import type { TestBackend } from "../queue/backends.ts";

const log = createLog({ level: "silent", name: "test" });

async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return (performance.now() - started) / 1_000;
}

describe.each(testBackends)("an outage of the job queue on $name", ({ start }) => {
  let backend: TestBackend;
  let proxy: StallingProxy;
  let queue: JobQueue;
  beforeAll(async () => {
    backend = await start();
  });
  beforeEach(async () => {
    proxy = await startStallingProxy(backend.location.url);
    queue = createJobQueue({ log }, { ...backend.location, url: proxy.url });
  });
  afterEach(async () => {
    proxy.resume();
    await queue.close();
    await proxy.close();
  });
  afterAll(() => backend.destroy());

  test.each(["cut", "stall"] as const)(
    "is told of within about two seconds when the line is %s, and is over when it is back",
    async (outage) => {
      await untilAnswering(queue);
      proxy[outage]();
      const calls = [
        () => queue.ping(),
        () => queue.add("apply", { seqs: [1] }),
        () => queue.upsertSchedule("tick", { everyMs: 60_000 }),
        () => queue.hasSchedule("tick"),
      ];
      const seconds = await secondsOf(() =>
        Promise.all(calls.map((call) => expect(call()).rejects.toThrow(QueueUnavailable))),
      );
      expect(seconds).toBeLessThan(2.7);
      proxy.resume();
      await untilAnswering(queue);
      await queue.add("apply", { seqs: [2] });
      await queue.upsertSchedule("tick", { everyMs: 60_000 });
      expect(await queue.hasSchedule("tick")).toBe(true);
    },
  );

  test("that was there from the start is told of, and work begins when it is over", async () => {
    proxy.cut();
    const got: number[] = [];
    queue.consume("apply", async ({ seqs }) => void got.push(...seqs), { concurrency: 1 });
    const seconds = await secondsOf(() =>
      expect(queue.add("apply", { seqs: [10] })).rejects.toThrow(QueueUnavailable),
    );
    expect(seconds).toBeLessThan(2.7);
    proxy.resume();
    await untilAnswering(queue);
    await queue.add("apply", { seqs: [11] });
    await eventually("the consumer gets the job", () => got.includes(11));
  });

  test("a consumer works again by itself afterwards", async () => {
    const got: number[] = [];
    queue.consume("apply", async ({ seqs }) => void got.push(...seqs), { concurrency: 1 });
    await untilAnswering(queue);
    await queue.add("apply", { seqs: [20] });
    await eventually("a job before", () => got.includes(20));
    proxy.cut();
    await expect(queue.ping()).rejects.toThrow(QueueUnavailable);
    proxy.resume();
    await untilAnswering(queue);
    await queue.add("apply", { seqs: [21] });
    await eventually("a job afterwards", () => got.includes(21));
  });

  test.each(["cut", "stall"] as const)(
    "does not hold up closing when the line is %s",
    async (outage) => {
      queue.consume("apply", async () => {}, { concurrency: 1 });
      await untilAnswering(queue);
      proxy[outage]();
      expect(await secondsOf(() => queue.close())).toBeLessThan(11);
    },
  );
});
