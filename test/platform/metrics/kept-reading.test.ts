import { expect, test, vi } from "vitest";
import { createLog } from "../../../src/platform/log.ts";
import { createKeptReading } from "../../../src/platform/metrics/kept-reading.ts";

const log = createLog({ level: "silent", name: "test", destination: process.stderr });

function setUp(read: () => Promise<number>, waitMs = 60_000) {
  let nowMs = Date.parse("2026-03-01T00:00:00Z");
  const clock = { now: () => new Date(nowMs) };
  return {
    reading: createKeptReading({ log, clock, name: "test" }, { freshMs: 15_000, waitMs, retryMs: 5_000 }, read),
    pass: (ms: number) => (nowMs += ms),
  };
}

test("reads once for all who ask within its time, and again after it", async () => {
  const read = vi.fn(async () => read.mock.calls.length);
  const { reading, pass } = setUp(read);
  expect(await Promise.all([reading.current(), reading.current()])).toEqual([1, 1]);
  pass(14_999);
  expect(await reading.current()).toBe(1);
  pass(1);
  expect(await reading.current()).toBe(2);
});

test("reads again where the clock was set back", async () => {
  const read = vi.fn(async () => read.mock.calls.length);
  const { reading, pass } = setUp(read);
  await reading.current();
  pass(-1);
  expect(await reading.current()).toBe(2);
});

test("shows nothing, and no old number, where it cannot read; and says so until it can", async () => {
  let problem: Error | null = null;
  const read = vi.fn(async () => {
    if (problem !== null) throw problem;
    return 7;
  });
  const { reading, pass } = setUp(read);
  expect([await reading.current(), reading.isReadable()]).toEqual([7, true]);
  problem = new Error("the database is away");
  pass(15_000);
  expect([await reading.current(), reading.isReadable()]).toEqual([null, false]);
  problem = null;
  pass(4_999);
  expect([await reading.current(), reading.isReadable()]).toEqual([null, false]);
  expect(read, "a sick database is not asked by every scrape").toHaveBeenCalledTimes(2);
  pass(1);
  expect([await reading.current(), reading.isReadable()]).toEqual([7, true]);
});

test("waits for a reading that hangs no longer than its limit, and begins no second one", async () => {
  let answer: (value: number) => void = () => {};
  const read = vi.fn(() => new Promise<number>((resolve) => (answer = resolve)));
  const { reading } = setUp(read, 1);
  expect([await reading.current(), reading.isReadable()]).toEqual([null, false]);
  expect(await reading.current()).toBeNull();
  expect(read).toHaveBeenCalledTimes(1);
  answer(3);
  await vi.waitFor(async () => expect(await reading.current()).toBe(3));
  expect(reading.isReadable()).toBe(true);
});
