import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createLog } from "../../src/platform/log.ts";
import { type JobQueue, createJobQueue } from "../../src/core/queue/job-queue.ts";
import { createWakeUps } from "../../src/core/queue/wake-ups.ts";
import { startStallingProxy } from "../receiver/stalling-proxy.ts";
import { eventually } from "../support/eventually.ts";
import { type TestBackend, createGate, testBackends, untilAnswering } from "./backends.ts";

const log = createLog({ level: "silent", name: "test" });

describe.each(testBackends)("wake-ups on $name", ({ start }) => {
  let backend: TestBackend;
  let queue: JobQueue;
  let jobs: number;
  beforeAll(async () => {
    backend = await start();
  });
  beforeEach(async () => {
    jobs = 0;
    queue = createJobQueue({ log }, backend.location);
    queue.consume(() => void jobs++);
    await untilAnswering(queue);
  });
  afterEach(() => queue.close());
  afterAll(() => backend.destroy());

  const until = (count: number) => eventually(`${count} wake-ups arrive`, () => jobs >= count);

  test("the first commit after a pause is a job at once, and those behind it are none", async () => {
    let calls = 0;
    const counting: Pick<JobQueue, "add"> = { add: () => (calls++, queue.add()) };
    const wakeUps = createWakeUps({ queue: counting, log });
    wakeUps.notify();
    await until(1);
    await wakeUps.close();
    for (let n = 0; n < 100; n++) wakeUps.notify();
    expect(calls).toBe(1);
  });

  test("as long as events come, there is a job a second", async () => {
    const wakeUps = createWakeUps({ queue, log });
    const startMs = performance.now();
    await eventually("three jobs", () => {
      wakeUps.notify();
      return jobs >= 3;
    });
    expect(performance.now() - startMs).toBeGreaterThan(1_900);
    await wakeUps.close();
  });

  test("closing waits for the job that is being added", async () => {
    const gate = createGate();
    const slow: Pick<JobQueue, "add"> = {
      add: async () => {
        await gate.passed;
        await queue.add();
      },
    };
    const wakeUps = createWakeUps({ queue: slow, log });
    wakeUps.notify();
    const closing = wakeUps.close();
    gate.open();
    await closing;
    await until(1);
    await expect(wakeUps.close()).resolves.toBeUndefined();
  });

  test("an outage loses wake-ups and throws nothing, and the next commit after it is a job", async () => {
    const proxy = await startStallingProxy(backend.location.url);
    const away = createJobQueue({ log }, { ...backend.location, url: proxy.url });
    try {
      proxy.cut();
      let calls = 0;
      const counted: Pick<JobQueue, "add"> = { add: () => (calls++, away.add()) };
      const wakeUps = createWakeUps({ queue: counted, log });
      for (let n = 0; n < 2_000; n++) wakeUps.notify();
      await wakeUps.close();
      expect(calls, "there is one attempt at a time").toBe(1);
      proxy.resume();
      await eventually("a wake-up arrives again", () => {
        wakeUps.notify();
        return jobs > 0;
      });
      await wakeUps.close();
    } finally {
      await away.close();
      await proxy.close();
    }
  });
});
