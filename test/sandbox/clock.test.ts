import { afterEach, expect, test } from "vitest";
import { type Job, type SandboxClock, createSandboxClock } from "../../src/parts/sandbox/engine/clock.ts";

let wallMs = Date.parse("2026-01-01T00:00:00Z");
const wallClock = { now: () => new Date(wallMs) };
let clock: SandboxClock | undefined;

function start(run: (job: Job) => void = () => undefined): SandboxClock {
  clock = createSandboxClock({ wallClock, run });
  return clock;
}

const job = (id: string, atMs: number, kind: Job["kind"] = "billing"): Job => ({
  id,
  atMs,
  kind,
  merchant: "merchant_1",
  mode: "test",
});

afterEach(() => clock?.close());

test("advance_seconds shifts a clock that keeps running", async () => {
  const time = start();
  const before = time.nowMs();
  await time.advance(60_000);
  expect(time.nowMs() - before).toBe(60_000);
  wallMs += 250;
  expect(time.nowMs() - before).toBe(60_250);
  expect(time.mode).toBe("real");
});

test("now makes it manual, also in the past", async () => {
  const time = start();
  await time.setNow(new Date("2020-02-29T12:00:00Z"));
  wallMs += 1000;
  expect(time.iso()).toBe("2020-02-29T12:00:00.000Z");
  await time.advance(1000);
  expect(time.iso()).toBe("2020-02-29T12:00:01.000Z");
  expect(time.mode).toBe("manual");
});

test("a jump does each job at its own time, in order, also those that jobs schedule", async () => {
  const done: string[] = [];
  const time: SandboxClock = start((due) => {
    done.push(`${due.id}@${time.iso().slice(11, 19)}`);
    if (due.id === "first") time.schedule(job("caused", due.atMs + 60_000));
  });
  await time.setNow(new Date("2026-01-01T00:00:00Z"));
  const base = time.nowMs();
  time.schedule(job("last", base + 3 * 60_000));
  time.schedule(job("first", base + 60_000));
  time.schedule(job("never", base + 11 * 60_000));
  await time.advance(10 * 60_000);
  expect(done).toEqual(["first@00:01:00", "caused@00:02:00", "last@00:03:00"]);
  expect(time.iso()).toBe("2026-01-01T00:10:00.000Z");
});

test("time never runs backward when the machine's clock does", () => {
  const time = start();
  const before = time.nowMs();
  wallMs -= 5000;
  expect(time.nowMs()).toBe(before);
  wallMs += 5000;
});

test("work that drives the clock runs jobs but no deliveries, and the clock resumes from there", async () => {
  const done: string[] = [];
  const time = start((due) => done.push(due.id));
  const base = time.nowMs();
  time.schedule(job("renewal", base + 1000));
  time.schedule(job("retry", base + 500, "delivery"));
  await time.drive(async (moveTo) => {
    moveTo(base + 2000);
    wallMs += 9999;
    expect(time.nowMs()).toBe(base + 2000);
    expect(done).toEqual(["renewal"]);
  });
  expect(time.nowMs()).toBe(base + 2000);
  expect(done).toEqual(["renewal", "retry"]);
});

test("a job that falls due on a running clock is done", async () => {
  const done = new Promise<string>((resolve) => {
    clock = createSandboxClock({
      wallClock: { now: () => new Date() },
      run: (due) => resolve(due.id),
    });
    clock.schedule(job("soon", clock.nowMs() + 20));
  });
  expect(await done).toBe("soon");
});
