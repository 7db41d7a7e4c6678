import { once } from "node:events";
import type { Knex } from "knex";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createLog } from "../../src/platform/log.ts";
import {
  type ScheduledTask,
  endTurn,
  isDue,
  keepTurn,
  readTasks,
  runScheduledTasks,
  takeTurn,
} from "../../src/core/worker/scheduled-tasks.ts";
import { eventually } from "../support/eventually.ts";
import { createGate } from "../queue/backends.ts";
import { useTestDatabase } from "../support/use-database.ts";

const database = useTestDatabase();
const log = createLog({ level: "silent", name: "test" });
let db: Knex;
const workers: { close(): Promise<void> }[] = [];

beforeEach(async () => {
  ({ db } = database);
  await db("inbox.tasks").delete();
});
afterEach(async () => {
  vi.useRealTimers();
  await Promise.all(workers.splice(0).map((worker) => worker.close()));
});

const times = { lookEveryMs: 20, turnMs: 60_000 };

function work(tasks: Readonly<Record<string, ScheduledTask>>, options = times): ReturnType<typeof runScheduledTasks> {
  const worker = runScheduledTasks({ db, log }, tasks, options);
  workers.push(worker);
  return worker;
}

/** The process's clock, which `Date` shows; the database's stays as it is. */
const setClockAhead = (ms: number): void => void vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + ms });

describe("scheduled tasks", () => {
  test("are started at once and again and again, also one that fails", async () => {
    let runs = 0;
    const run = async (): Promise<void> => {
      runs++;
      throw new Error("no");
    };
    work({ tick: { schedule: { everyMs: 50 }, run } });
    await eventually("it ran three times", () => runs >= 3);
  });

  test("that wait for a time by the clock are not started when they become known", async () => {
    let runs = 0;
    const { minute } = await databaseMinute();
    const cron = `${(minute + 30) % 60} * * * *`;
    work({
      nightly: { schedule: { cron, timeZone: "UTC" }, run: async () => void runs++ },
      tick: { schedule: { everyMs: 10 }, run: async () => {} },
    });
    await eventually("the other one ran", async () => (await startsOf("tick")) >= 3);
    expect(runs).toBe(0);
  });

  test("that take long hold up no other, and are not begun again meanwhile", async () => {
    const runs = { long: 0, short: 0 };
    let isEnded = false;
    const schedule = { everyMs: 20 };
    const worker = work({
      long: {
        schedule,
        async run(stopping) {
          runs.long++;
          await once(stopping, "abort");
          isEnded = true;
        },
      },
      short: { schedule, run: async () => void runs.short++ },
    });
    await eventually("the short one ran on", () => runs.long > 0 && runs.short >= 5);
    expect(runs.long).toBe(1);
    // Which it is told, and waited for.
    await worker.close();
    expect(isEnded).toBe(true);
  });

  test.each([0, 90_000, -90_000, 86_400_000])(
    "run on one worker at a time, though the clock of another is %i ms ahead",
    async (aheadMs) => {
      const gate = createGate();
      let atWork = 0;
      let most = 0;
      let runs = 0;
      const task: ScheduledTask = {
        schedule: { everyMs: 10 },
        async run() {
          most = Math.max(most, ++atWork);
          await gate.passed;
          atWork--;
          runs++;
        },
      };
      const beats = { schedule: { everyMs: 10 }, run: async () => {} };
      // Each has a beat of its own, which shows that it has looked.
      work({ alone: task, first: beats });
      await eventually("one is at work", () => atWork === 1);
      setClockAhead(aheadMs);
      work({ alone: task, second: beats });
      work({ alone: task, third: beats });
      for (const name of ["second", "third"]) {
        await eventually(`${name} has looked`, async () => (await startsOf(name)) >= 3);
      }
      expect([atWork, most]).toEqual([1, 1]);
      gate.open();
      await eventually("it goes on", () => runs >= 5);
      expect(most).toBe(1);
    },
  );

  test("of a worker that was killed are another worker's when its turn is over", async () => {
    const turnMs = 500;
    await readTasks(db, ["alone"], turnMs);
    expect(await takeTurn(db, { name: "alone", holder }, { starts: 0, turnMs })).toBe(true);
    let runs = 0;
    work({ alone: { schedule: { everyMs: 1 }, run: async () => void runs++ } }, { lookEveryMs: 20, turnMs });
    await eventually("the next one has it", () => runs > 0);
    expect(await keepTurn(db, { name: "alone", holder }, turnMs)).toBe(false);
    // Who comes back late takes nothing away.
    await endTurn(db, { name: "alone", holder });
    await eventually("it goes on", () => runs > 2);
  });

  test("are told when another worker has their turn", async () => {
    let reason: unknown;
    work(
      {
        alone: {
          schedule: { everyMs: 3_600_000 },
          async run(stopping) {
            await once(stopping, "abort");
            reason = stopping.reason;
          },
        },
      },
      { lookEveryMs: 20, turnMs: 400 },
    );
    await eventually("it is at work", async () => (await startsOf("alone")) === 1);
    await db("inbox.tasks").where({ name: "alone" }).update({ holder });
    await eventually("it was told", () => reason);
    expect(String(reason)).toContain("turn");
    expect(await db("inbox.tasks").where({ name: "alone" }).first()).toMatchObject({ holder });
  });

  test("go on when the database's clock was set back by a day", async () => {
    await db("inbox.tasks").insert({
      name: "alone",
      starts: 1,
      started_at: db.raw("now() + interval '1 day'"),
      holder,
      held_until: db.raw("now() + interval '1 day'"),
    });
    let runs = 0;
    work({ alone: { schedule: { everyMs: 3_600_000 }, run: async () => void runs++ } });
    await eventually("it ran", () => runs === 1);
  });
});

describe("a time by the clock is due", () => {
  const minuteMs = 60_000;

  // In each, clocks jump at midnight or fall back to before it: BullMQ's own reader of cron leaves out the whole day.
  test.each([
    ["America/Santiago", "2026-09-06"],
    ["America/Santiago", "2026-04-04"],
    ["Africa/Cairo", "2026-04-24"],
    ["Africa/Cairo", "2026-10-29"],
    ["Asia/Beirut", "2026-03-29"],
    ["America/Havana", "2026-03-08"],
    ["America/Havana", "2026-11-01"],
    ["Europe/Berlin", "2026-03-29"],
    ["Europe/Berlin", "2026-10-25"],
    ["Australia/Lord_Howe", "2026-10-04"],
    ["UTC", "2026-02-28"],
  ])("once a day in %s around %s", (timeZone, day) => {
    const middle = Date.parse(`${day}T12:00:00Z`);
    for (const cron of ["0 0 * * *", "30 0 * * *"]) {
      let state = { knownSince: new Date(middle - 24 * 3_600_000), startedAt: null as Date | null };
      const starts: number[] = [];
      for (let ms = state.knownSince.getTime(); ms <= middle + 24 * 3_600_000; ms += 10 * minuteMs) {
        const now = new Date(ms);
        if (!isDue({ cron, timeZone }, { ...state, now })) continue;
        state = { ...state, startedAt: now };
        starts.push(ms);
      }
      expect(starts, cron).toHaveLength(2);
    }
  });

  test("by every look until it was started, and for ten minutes", () => {
    const schedule = { cron: "30 3 * * *", timeZone: "UTC" };
    const knownSince = new Date("2026-05-01T00:00:00Z");
    const at = (time: string, startedAt: Date | null = null): boolean =>
      isDue(schedule, { knownSince, startedAt, now: new Date(`2026-05-02T${time}Z`) });
    expect(["03:29:59", "03:30:00", "03:39:59", "03:40:00"].map((time) => at(time))).toEqual([
      false,
      true,
      true,
      false,
    ]);
    expect(at("03:31:00", new Date("2026-05-02T03:30:01Z"))).toBe(false);
    // The clock was set back after a start.
    expect(at("03:31:00", new Date("2026-05-03T03:30:01Z"))).toBe(true);
    expect(at("02:00:00", new Date("2026-05-03T03:30:01Z"))).toBe(false);
  });
});

const holder = "00000000-0000-4000-8000-000000000001";

async function startsOf(name: string): Promise<number> {
  const row = await db<{ name: string; starts: string }>("inbox.tasks").where({ name }).first();
  return Number(row?.starts ?? 0);
}

async function databaseMinute(): Promise<{ minute: number }> {
  const { rows } = await db.raw<{ rows: [{ minute: number }] }>("select extract(minute from now())::int as minute");
  return rows[0];
}
