import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createLog } from "../../src/platform/log.ts";
import { JobNotTaken, type JobQueue, createJobQueue } from "../../src/core/queue/job-queue.ts";
import { eventually } from "../support/eventually.ts";
import { type TestBackend, testBackends, untilAnswering, untilWorking, withBareQueue } from "./backends.ts";

const log = createLog({ level: "silent", name: "test" });

describe.each(testBackends)("the job queue on $name", ({ start }) => {
  let backend: TestBackend;
  const queues: JobQueue[] = [];
  beforeAll(async () => {
    backend = await start();
  });
  afterEach(async () => {
    await Promise.all(queues.splice(0).map((queue) => queue.close()));
    await withBareQueue(backend.location, (bare) => bare.obliterate({ force: true }));
  });
  afterAll(() => backend.destroy());

  const create = (): JobQueue => {
    const queue = createJobQueue({ log }, backend.location);
    queues.push(queue);
    return queue;
  };
  const open = async (): Promise<JobQueue> => {
    const queue = create();
    await untilAnswering(queue);
    return queue;
  };

  test("takes a job straight after it was made, and one that another process added before or after", async () => {
    await create().add();
    let jobs = 0;
    const consumer = await open();
    consumer.consume(() => void jobs++);
    await eventually("the first job", () => jobs === 1);
    await create().add();
    await eventually("the second job", () => jobs === 2);
  });

  test("keeps a short stream of its events, which nobody reads", async () => {
    await (await open()).add();
    await withBareQueue(backend.location, async (bare) => {
      // BullMQ writes it beside the first job, and waits for neither.
      await eventually("the limit", async () => (await bare.getMeta()).maxLenEvents === 1_000);
    });
  });

  test("hands each job to one of several consumers, once", async () => {
    const producer = await open();
    const got = [0, 0];
    for (const n of [0, 1]) (await open()).consume(() => void (got[n] = (got[n] ?? 0) + 1));
    const sum = () => got.reduce((all, each) => all + each, 0);
    // One by one: of forty at once the last waits for all others, on a busy machine past its time limit.
    for (let n = 1; n <= 40; n++) await producer.add();
    await eventually("every job", () => sum() >= 40);
    await producer.roundTrip();
    expect(sum()).toBe(40);
  });

  test("takes a job that another hand made for a wake-up, whatever it carries, and goes on", async () => {
    const queue = await open();
    let jobs = 0;
    await withBareQueue(backend.location, async (bare) => {
      await bare.add("schedule", { task: ["everything"], constructor: 1 });
      await bare.add("", null);
    });
    queue.consume(() => void jobs++);
    await eventually("both", () => jobs === 2);
    await queue.add();
    await eventually("the next one", () => jobs === 3);
    expect(await queue.depth()).toMatchObject({ waiting: 0, failed: 0 });
  });

  test("a job carries nothing, and nothing is kept of it", async () => {
    const queue = await open();
    await queue.add();
    await withBareQueue(backend.location, async (bare) => {
      const [job] = await bare.getWaiting();
      expect([job?.name, job?.data]).toEqual(["wake-up", {}]);
      queue.consume(() => {});
      await queue.roundTrip();
      await eventually("it is gone", async () => (await bare.getJobs()).length === 0);
    });
  });

  test("a consumer that closes takes no further job, which goes to the next consumer", async () => {
    const queue = await open();
    let before = 0;
    const consumer = queue.consume(() => void before++);
    await queue.add();
    await eventually("a job came", () => before === 1);
    await consumer.close();
    await queue.add();
    let after = 0;
    queue.consume(() => void after++);
    await eventually("the second goes to the next consumer", () => after === 1);
    expect(before).toBe(1);
  });

  test("a job comes back from a consumer of any process, wakes nobody and leaves nothing behind", async () => {
    const [producer, consumer] = [await open(), await open()];
    let jobs = 0;
    consumer.consume(() => void jobs++);
    await producer.roundTrip();
    const kept = () =>
      withBareQueue(backend.location, async (bare) => [
        await bare.getJobCounts(),
        await bare.getBackend().getQueueMeta(),
      ]);
    const before = await kept();
    await Promise.all(Array.from({ length: 20 }, () => producer.roundTrip()));
    expect(await kept()).toEqual(before);
    expect(jobs).toBe(0);
  });

  test.each(["nobody takes jobs", "the queue is paused"])(
    "no job comes back while %s, of which one waits however often it was tried",
    async (reason) => {
      const queue = await open();
      const paused = reason === "the queue is paused";
      if (paused) queue.consume(() => {});
      await withBareQueue(backend.location, async (bare) => {
        if (paused) await bare.pause();
        for (let n = 0; n < 3; n++) {
          await expect(queue.roundTrip({ withinMs: 100 })).rejects.toThrow(JobNotTaken);
        }
        const depth = await queue.depth();
        expect(depth.waiting).toBe(1);
        expect(depth.oldestWaitingAt).not.toBeNull();
        if (paused) await bare.resume();
        else queue.consume(() => {});
      });
      await untilWorking(queue);
      expect(await queue.depth()).toMatchObject({ waiting: 0, oldestWaitingAt: null });
    },
  );

  test.each([false, true])(
    "counts the jobs that wait and knows the oldest one, also in a queue that is paused: %s",
    async (isPaused) => {
      const queue = await open();
      const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000);
      const oldest = hoursAgo(3);
      await withBareQueue(backend.location, async (bare) => {
        for (const at of [oldest, hoursAgo(2), hoursAgo(1)]) {
          await bare.add("wake-up", {}, { timestamp: at.getTime() });
        }
        await bare.add("wake-up", {}, { delay: 3_600_000 });
        if (isPaused) await bare.pause();
        expect(await queue.depth()).toEqual({
          queue: "apply",
          waiting: 3,
          active: 0,
          delayed: 1,
          failed: 0,
          oldestWaitingAt: oldest,
        });
        if (isPaused) await bare.resume();
      });
    },
  );

  test("closes twice without complaint, and takes nothing afterwards", async () => {
    const queue = await open();
    await queue.close();
    await expect(queue.close()).resolves.toBeUndefined();
    await expect(queue.add()).rejects.toThrow();
  });
});
