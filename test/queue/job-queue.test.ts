import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createLog } from "../../src/platform/log.ts";
import { createBackend } from "../../src/queue/backend.ts";
import { type JobQueue, createJobQueue } from "../../src/queue/job-queue.ts";
import { eventually } from "../support/eventually.ts";
import {
  type TestBackend,
  createGate,
  testBackends,
  untilAnswering,
  withBareQueue,
} from "./backends.ts";

const log = createLog({ level: "silent", name: "test" });

describe.each(testBackends)("the job queue on $name", ({ start }) => {
  let backend: TestBackend;
  const queues: JobQueue[] = [];
  beforeAll(async () => {
    backend = await start();
  });
  afterEach(async () => {
    await Promise.all(queues.splice(0).map((queue) => queue.close()));
    for (const name of ["apply", "schedule"] as const) {
      await withBareQueue(backend.location, name, (bare) => bare.obliterate({ force: true }));
    }
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

  test("takes a ping, a job and a schedule straight after it was made", async () => {
    await expect(create().ping()).resolves.toBeUndefined();
    await create().add("apply", {});
    const every = { everyMs: 60_000 };
    await create().upsertSchedule("tick", every);
    let jobs = 0;
    const queue = await open();
    queue.consume("apply", async () => void jobs++, { concurrency: 1 });
    await eventually("the job arrives", () => jobs === 1);
    expect(await queue.hasSchedule("tick", every)).toBe(true);
  });

  test("keeps a short stream of its events, which nobody reads", async () => {
    await (await open()).add("apply", {});
    const queue = createBackend(backend.location).queue("apply");
    expect(await queue.getMeta()).toMatchObject({ maxLenEvents: 1_000 });
    await queue.close();
  });

  test("hands over what another process added, before or after the consumer came", async () => {
    const [producer, consumer] = [await open(), await open()];
    await producer.add("schedule", { task: "before" });
    const got: string[] = [];
    consumer.consume("schedule", async ({ task }) => void got.push(task), { concurrency: 1 });
    await eventually("the first job", () => got.length === 1);
    await producer.add("schedule", { task: "after" });
    await eventually("the second job", () => got.length === 2);
    expect(got).toEqual(["before", "after"]);
  });

  test("hands each job to one of several consumers, once", async () => {
    const producer = await open();
    const got: string[] = [];
    for (const queue of [await open(), await open()]) {
      queue.consume("schedule", async ({ task }) => void got.push(task), { concurrency: 2 });
    }
    const expected = Array.from({ length: 40 }, (_, n) => `task-${n + 10}`);
    // One by one: of forty at once the last waits for all others, on a busy machine past its time limit.
    for (const task of expected) await producer.add("schedule", { task });
    await eventually("every job", () => got.length >= expected.length);
    expect(got.sort()).toEqual(expected);
  });

  test.each([
    ["no name", { task: "" }],
    ["a number for a name", { task: 1 }],
    ["nothing", undefined],
  ])("does not take a job with %s", async (_, payload) => {
    const queue = await open();
    await expect(queue.add("schedule", payload as { task: string })).rejects.toThrow(
      /invalid|expected|too/i,
    );
    await withBareQueue(backend.location, "schedule", async (bare) => {
      expect(await bare.getWaitingCount()).toBe(0);
    });
  });

  test("does not hand over a job that another hand made wrongly, and goes on with the next", async () => {
    const queue = await open();
    await withBareQueue(backend.location, "schedule", async (bare) => {
      await bare.add("schedule", { task: ["everything"] });
      await bare.add("schedule", { ids: [1] });
    });
    const got: unknown[] = [];
    queue.consume("schedule", async (payload) => void got.push(payload), { concurrency: 1 });
    await queue.add("schedule", { task: "good" });
    await eventually("the good job", () => got.length > 0);
    expect(got).toEqual([{ task: "good" }]);
    await withBareQueue(backend.location, "schedule", async (bare) => {
      expect(await bare.getFailedCount()).toBe(2);
    });
  });

  test("a handler that throws fails its job once, keeps what it said out of the queue, and the consumer goes on", async () => {
    const queue = await open();
    const got: string[] = [];
    queue.consume(
      "schedule",
      async ({ task }) => {
        got.push(task);
        if (task !== "c") throw new Error("no order of jane@example.com");
      },
      { concurrency: 1 },
    );
    for (const task of ["a", "b", "c"]) await queue.add("schedule", { task });
    await eventually("all three", () => got.includes("c"));
    expect(got).toEqual(["a", "b", "c"]);
    await withBareQueue(backend.location, "schedule", async (bare) => {
      const failed = await bare.getFailed();
      expect(failed).toHaveLength(2);
      expect(JSON.stringify(failed.map((job) => job.asJSON()))).not.toContain("jane");
    });
  });

  test("works on as many jobs at a time as it was told to, and on no more", async () => {
    const queue = await open();
    let atWork = 0;
    let most = 0;
    let done = 0;
    const gate = createGate();
    queue.consume(
      "apply",
      async () => {
        most = Math.max(most, ++atWork);
        await gate.passed;
        atWork--;
        done++;
      },
      { concurrency: 3 },
    );
    for (let n = 1; n <= 8; n++) await queue.add("apply", {});
    await eventually("three at work", () => atWork === 3);
    gate.open();
    await eventually("all are done", () => done === 8);
    expect(most).toBe(3);
  });

  test("a consumer that closes finishes its job and takes no further one", async () => {
    const queue = await open();
    const gate = createGate();
    const got: string[] = [];
    let finished = false;
    const consumer = queue.consume(
      "schedule",
      async ({ task }) => {
        got.push(task);
        await gate.passed;
        finished = true;
      },
      { concurrency: 1 },
    );
    await queue.add("schedule", { task: "first" });
    await queue.add("schedule", { task: "second" });
    await eventually("the first is at work", () => got.length === 1);
    const closing = consumer.close();
    gate.open();
    await closing;
    expect(finished).toBe(true);
    expect(got).toEqual(["first"]);
    const after: string[] = [];
    queue.consume("schedule", async ({ task }) => void after.push(task), { concurrency: 1 });
    await eventually("the second goes to the next consumer", () => after.length === 1);
    expect(after).toEqual(["second"]);
  });

  test("a schedule is there once, whoever makes it how often, and fires again and again", async () => {
    const [one, other] = [await open(), await open()];
    const everyFifth = { everyMs: 200 };
    expect(await one.hasSchedule("tick", everyFifth)).toBe(false);
    await Promise.all([one, other].map((queue) => queue.upsertSchedule("tick", everyFifth)));
    await other.upsertSchedule("tick", everyFifth);
    expect(await one.hasSchedule("tick", everyFifth)).toBe(true);
    expect(await one.hasSchedule("tock", everyFifth)).toBe(false);
    await withBareQueue(backend.location, "schedule", async (bare) => {
      expect(await bare.getJobSchedulersCount()).toBe(1);
    });
    const fired: string[] = [];
    one.consume("schedule", async ({ task }) => void fired.push(task), { concurrency: 1 });
    await eventually("it fires three times", () => fired.length >= 3);
    expect(new Set(fired)).toEqual(new Set(["tick"]));
  });

  test("a schedule that is changed to a shorter one fires by that", async () => {
    const queue = await open();
    const fired: string[] = [];
    await queue.upsertSchedule("tick", { everyMs: 86_400_000 });
    queue.consume("schedule", async ({ task }) => void fired.push(task), { concurrency: 1 });
    await eventually("it fires at once", () => fired.length === 1);
    await queue.upsertSchedule("tick", { everyMs: 100 });
    await eventually("it fires again and again", () => fired.length >= 4);
    expect(new Set(fired)).toEqual(new Set(["tick"]));
  });

  test("a schedule can be given by the clock, and be changed", async () => {
    const queue = await open();
    await queue.upsertSchedule("nightly", { cron: "30 2 * * *", timeZone: "Europe/Berlin" });
    const changed = { cron: "0 4 * * *", timeZone: "Europe/Berlin" };
    expect(await queue.hasSchedule("nightly", changed)).toBe(false);
    await queue.upsertSchedule("nightly", changed);
    expect(await queue.hasSchedule("nightly", changed)).toBe(true);
    expect(await queue.hasSchedule("nightly", { ...changed, timeZone: "UTC" })).toBe(false);
    expect(await queue.hasSchedule("nightly", { everyMs: 200 })).toBe(false);
    await withBareQueue(backend.location, "schedule", async (bare) => {
      expect(await bare.getJobScheduler("nightly")).toMatchObject({
        pattern: "0 4 * * *",
        tz: "Europe/Berlin",
      });
      expect(await bare.getJobSchedulersCount()).toBe(1);
    });
  });

  test("a ping leaves nothing behind, however often", async () => {
    const queue = await open();
    await queue.add("apply", {});
    await withBareQueue(backend.location, "apply", async (bare) => {
      const kept = async () => [await bare.getJobCounts(), await bare.getBackend().getQueueMeta()];
      const before = await kept();
      await Promise.all(Array.from({ length: 50 }, () => queue.ping()));
      expect(await kept()).toEqual(before);
    });
  });

  test("answers a ping, and closes twice without complaint", async () => {
    const queue = await open();
    await expect(queue.ping()).resolves.toBeUndefined();
    await queue.close();
    await expect(queue.close()).resolves.toBeUndefined();
    await expect(queue.ping()).rejects.toThrow();
  });
});
