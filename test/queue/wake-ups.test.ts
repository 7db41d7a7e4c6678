import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createLog } from "../../src/platform/log.ts";
import { type JobQueue, createJobQueue } from "../../src/queue/job-queue.ts";
import { createWakeUps } from "../../src/queue/wake-ups.ts";
import { startStallingProxy } from "../receiver/stalling-proxy.ts";
import { eventually } from "../support/eventually.ts";
import { type TestBackend, createGate, testBackends, untilAnswering } from "./backends.ts";

const log = createLog({ level: "silent", name: "test" });

describe.each(testBackends)("wake-ups on $name", ({ start }) => {
  let backend: TestBackend;
  let queue: JobQueue;
  let jobs: number[][];
  beforeAll(async () => {
    backend = await start();
  });
  beforeEach(async () => {
    jobs = [];
    queue = createJobQueue({ log }, backend.location);
    queue.consume("apply", async ({ seqs }) => void jobs.push(seqs), { concurrency: 1 });
    await untilAnswering(queue);
  });
  afterEach(() => queue.close());
  afterAll(() => backend.destroy());

  const until = (count: number) =>
    eventually(`${count} wake-ups arrive`, () => jobs.flat().length >= count, { withinMs: 3_000 });
  const upTo = (count: number) => Array.from({ length: count }, (_, n) => n + 1);

  /** The real queue, which takes its first job only when the gate opens. */
  function gated() {
    const gate = createGate();
    let calls = 0;
    const add: JobQueue["add"] = async (name, payload) => {
      calls++;
      await gate.passed;
      await queue.add(name, payload);
    };
    return { add, open: () => gate.open(), calls: () => calls };
  }

  test("one commit is one job at once", async () => {
    const wakeUps = createWakeUps({ queue, log });
    wakeUps.notify([3, 1, 2]);
    await until(3);
    expect(jobs).toEqual([[3, 1, 2]]);
    wakeUps.notify([4]);
    await until(4);
    expect(jobs[1]).toEqual([4]);
    await wakeUps.close();
  });

  test("what is committed while a job is being added goes together in few jobs, none lost", async () => {
    const slow = gated();
    const wakeUps = createWakeUps({ queue: slow, log });
    for (const seq of upTo(1_201)) wakeUps.notify([seq]);
    expect(slow.calls()).toBe(1);
    slow.open();
    await until(1_201);
    expect(jobs.map((seqs) => seqs.length)).toEqual([1, 500, 500, 200]);
    expect(jobs.flat()).toEqual(upTo(1_201));
  });

  test("a large commit is cut into jobs that a queue takes", async () => {
    const wakeUps = createWakeUps({ queue, log });
    wakeUps.notify(upTo(12_000));
    await until(12_000);
    expect(jobs.flat()).toEqual(upTo(12_000));
    expect(Math.max(...jobs.map((seqs) => seqs.length))).toBe(500);
  });

  test("closing waits for what was taken", async () => {
    const wakeUps = createWakeUps({ queue, log });
    for (const seq of upTo(600)) wakeUps.notify([seq]);
    await wakeUps.close();
    await until(600);
    expect(jobs.flat().toSorted((a, b) => a - b)).toEqual(upTo(600));
    await expect(wakeUps.close()).resolves.toBeUndefined();
  });

  test("a commit of nothing changes nothing", async () => {
    const wakeUps = createWakeUps({ queue, log });
    wakeUps.notify([]);
    wakeUps.notify([1]);
    await until(1);
    expect(jobs).toEqual([[1]]);
  });

  test("an outage loses wake-ups and throws nothing, and the next one afterwards arrives", async () => {
    const proxy = await startStallingProxy(backend.location.url);
    const away = createJobQueue({ log }, { ...backend.location, url: proxy.url });
    try {
      proxy.cut();
      let calls = 0;
      const counted: Pick<JobQueue, "add"> = {
        add: (name, payload) => (calls++, away.add(name, payload)),
      };
      const wakeUps = createWakeUps({ queue: counted, log });
      for (const seq of upTo(2_000)) wakeUps.notify([seq]);
      await wakeUps.close();
      expect(calls, "what waits is not tried one after the other").toBe(1);
      proxy.resume();
      await eventually(
        "a wake-up arrives again",
        () => {
          wakeUps.notify([5_000]);
          return jobs.flat().includes(5_000);
        },
        { withinMs: 15_000 },
      );
      // It was taken in hand when the queue went away, so it may still come.
      expect(jobs.flat().filter((seq) => seq !== 5_000 && seq !== 1)).toEqual([]);
      await wakeUps.close();
    } finally {
      await away.close();
      await proxy.close();
    }
  });

  test("keeps only so much in mind while the queue is away", async () => {
    const slow = gated();
    const wakeUps = createWakeUps({ queue: slow, log });
    wakeUps.notify([1]);
    for (let n = 0; n < 100; n++) wakeUps.notify(upTo(1_000));
    slow.open();
    await wakeUps.close();
    // The first job, then some 50,000 in jobs of 500.
    expect(slow.calls()).toBeGreaterThan(90);
    expect(slow.calls()).toBeLessThan(110);
  });
});
