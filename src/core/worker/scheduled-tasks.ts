import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import { lastDue } from "../../platform/cron.ts";
import type { Log } from "../../platform/log.ts";
import { type Loop, runEvery } from "../../platform/run-every.ts";
import { type TaskState, endTurn, keepTurn, readTasks, takeTurn } from "./task-turns.ts";

/** When a task runs: at a fixed interval, or by a cron expression in an IANA time zone. */
export type Schedule = { everyMs: number } | { cron: string; timeZone: string };

/**
 * A task that runs on a schedule, on one worker at a time. A worker that was stopped for longer than a turn may wake up
 * during the next one, so overlapping runs must do no harm. `stopping` is aborted when the worker stops, which then
 * waits some seconds for the task, and when the turn was lost.
 */
export interface ScheduledTask {
  schedule: Schedule;
  run(stopping: AbortSignal): Promise<void>;
}

export interface TaskTimes {
  /** Interval between two checks for due tasks. */
  lookEveryMs: number;
  /** How long a turn lasts without renewal; it is renewed four times as often. */
  turnMs: number;
}

const defaultTimes: TaskTimes = { lookEveryMs: 1_000, turnMs: 60_000 };

/** A start that is later than this counts as missed, and the task decides what to do about it. */
const lateMs = 10 * 60_000;
const closeTimeoutMs = 5_000;

/**
 * Whether a task is to be started. By an interval: when so much time has passed since its last start, or it never was.
 * By the clock: when a time that `lastDue` gives has come since the last start, or since the task is known. A start
 * that lies ahead of now, since the clock was set back, does not count.
 */
export function isDue(
  schedule: Schedule,
  { knownSince, startedAt, now }: Pick<TaskState, "knownSince" | "startedAt" | "now">,
): boolean {
  if ("everyMs" in schedule) {
    const sinceMs = startedAt === null ? Infinity : now.getTime() - startedAt.getTime();
    return sinceMs < 0 || sinceMs >= schedule.everyMs;
  }
  const { cron, timeZone } = schedule;
  const since = startedAt ?? knownSince;
  const due = lastDue(cron, { timeZone, now, withinMs: lateMs });
  return due !== null && (due > since || since > now);
}

/**
 * Starts tasks when they are due, side by side, until it is closed. Any number of workers may do so with one database,
 * whose clock alone decides: one of them starts a task, and no other one while it runs.
 */
export function runScheduledTasks(
  { db, log }: { db: Knex; log: Log },
  tasks: Readonly<Record<string, ScheduledTask>>,
  { lookEveryMs, turnMs }: TaskTimes = defaultTimes,
): Pick<Loop, "sinceProgressMs" | "close"> {
  const names = Object.keys(tasks);
  const stopping = new AbortController();
  const running = new Set<Promise<void>>();

  async function start(name: string, task: ScheduledTask, starts: number): Promise<void> {
    const turn = { name, holder: randomUUID() };
    if (!(await takeTurn(db, turn, { starts, turnMs }))) return;
    const lost = new AbortController();
    const lose = (): void => lost.abort(new Error("the turn of this task is over"));
    // Without the database there is no word of whether another worker has taken the turn.
    const over = setTimeout(lose, turnMs);
    const keeping = runEvery({ log, name: `turn of ${name}` }, turnMs / 4, async () => {
      if (await keepTurn(db, turn, turnMs)) over.refresh();
      else lose();
      return { more: false };
    });
    const work = (async () => {
      try {
        await task.run(AbortSignal.any([stopping.signal, lost.signal]));
      } catch (err) {
        log.warn({ err, task: name }, "a scheduled task failed");
      }
      await keeping.close();
      clearTimeout(over);
      await endTurn(db, turn).catch((err: unknown) => {
        log.warn({ err, task: name }, "the turn of a task could not be given back: it ends by itself");
      });
    })().finally(() => running.delete(work));
    running.add(work);
  }

  const looks = runEvery({ log, name: "schedules" }, lookEveryMs, async () => {
    if (names.length === 0) return { more: false };
    for (const { name, starts, isHeld, ...state } of await readTasks(db, names, turnMs)) {
      const task = tasks[name];
      if (task === undefined || isHeld || stopping.signal.aborted) continue;
      if (isDue(task.schedule, state)) await start(name, task, starts);
    }
    return { more: false };
  });
  return {
    sinceProgressMs: looks.sinceProgressMs,
    async close() {
      stopping.abort(new Error("the worker is stopping"));
      await looks.close();
      const over = new AbortController();
      const late = sleep(closeTimeoutMs, undefined, { signal: over.signal }).catch(() => {});
      await Promise.race([Promise.all(running), late]);
      over.abort();
    },
  };
}
