import { expect, test } from "vitest";
import { createSlowReads } from "../../src/app/dashboard/elements/slow-reads.ts";
import { createLog } from "../../src/platform/log.ts";

const log = createLog({ level: "silent", name: "test" });

/** Reads that take so long by a clock of their own, and how many there were. */
function stand() {
  let nowMs = 0;
  let times = 0;
  const reads = createSlowReads<string, number>();
  const deps = { log, clock: { now: () => new Date(nowMs) } };
  const read = (takesMs: number) =>
    reads(deps, "key", async () => {
      nowMs += takesMs;
      return ++times;
    });
  return { reads, deps, read, pass: (ms: number) => void (nowMs += ms) };
}

test("what is read quickly is read each time", async () => {
  const { read } = stand();
  expect(await read(99)).toEqual({ value: 1, ageMs: 0 });
  expect(await read(99)).toEqual({ value: 2, ageMs: 0 });
});

test("what is slow is kept, with its age from the beginning of its reading", async () => {
  const { read, pass } = stand();
  expect(await read(400)).toEqual({ value: 1, ageMs: 0 });
  pass(5_000);
  expect(await read(400)).toEqual({ value: 1, ageMs: 5_400 });
});

test("an older one is shown while it is read again for the next page", async () => {
  const { read, pass } = stand();
  await read(400);
  pass(20_000);
  expect((await read(0)).value).toBe(1);
  await Promise.resolve();
  expect(await read(0)).toMatchObject({ value: 3, ageMs: 0 });
});

test("one of more than a minute is not shown", async () => {
  const { read, pass } = stand();
  await read(400);
  pass(60_000);
  expect(await read(400)).toEqual({ value: 2, ageMs: 0 });
});

test("pages that ask at once share one reading, and its failure is not kept", async () => {
  const { reads, deps } = stand();
  let times = 0;
  const fail = () =>
    reads(deps, "shared", async () => {
      times++;
      throw new Error("no table");
    });
  const both = await Promise.allSettled([fail(), fail()]);
  expect(both.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(times).toBe(1);
  expect((await reads(deps, "shared", () => Promise.resolve(7))).value).toBe(7);
});
