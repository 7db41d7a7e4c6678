import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import { lastDue } from "../../platform/cron.ts";
import type { Log } from "../../platform/log.ts";
import { type Loop, runEvery } from "../../platform/run-every.ts";
import { sqlArray } from "../../platform/postgres/values.ts";

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

/** A scheduled task as all workers of a database know it. Times are the database's. */
interface TaskState {
  name: string;
  knownSince: Date;
  starts: number;
  startedAt: Date | null;
  /** Whether a worker runs it, or was killed less than a turn's length ago. */
  isHeld: boolean;
  now: Date;
}

/**
 * Reads the states of these tasks; a new one is written down. A turn that ends later than one that began now would (the
 * database's clock was set back) has no holder.
 */
export async function readTasks(db: Knex, names: readonly string[], turnMs: number): Promise<TaskState[]> {
  const read = async (): Promise<TaskState[]> => {
    const { rows } = await db.raw<{ rows: (Omit<TaskState, "starts"> & { starts: string })[] }>(
      `select name, known_since as "knownSince", starts, started_at as "startedAt", clock_timestamp() as now,
              ${isHeld} as "isHeld"
       from inbox.tasks where name = any(:names::text[])`,
      { names: sqlArray(names), turnMs },
    );
    return rows.map(({ starts, ...row }) => ({ ...row, starts: Number(starts) }));
  };
  const known = await read();
  if (known.length === names.length) return known;
  await db.raw("insert into inbox.tasks (name) select unnest(?::text[]) on conflict (name) do nothing", [
    sqlArray(names),
  ]);
  return read();
}

const isHeld = `coalesce(held_until > clock_timestamp()
  and held_until <= clock_timestamp() + make_interval(secs => :turnMs::float8 / 1000), false)`;

const turnEnds = "clock_timestamp() + make_interval(secs => :turnMs::float8 / 1000)";

interface Turn {
  name: string;
  /** Unique to this turn. */
  holder: string;
}

/** Begins a task, unless its number of starts has changed, or its turn is held. One statement. */
export async function takeTurn(
  db: Knex,
  { name, holder }: Turn,
  { starts, turnMs }: { starts: number; turnMs: number },
): Promise<boolean> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `update inbox.tasks
     set starts = starts + 1, started_at = clock_timestamp(), holder = :holder, held_until = ${turnEnds}
     where name = :name and starts = :starts and not ${isHeld}`,
    { name, holder, starts, turnMs },
  );
  return rowCount === 1;
}

/** Keeps a turn for its whole length from now on. False when another worker has it. One statement. */
export async function keepTurn(db: Knex, { name, holder }: Turn, turnMs: number): Promise<boolean> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `update inbox.tasks set held_until = ${turnEnds} where name = :name and holder = :holder`,
    { name, holder, turnMs },
  );
  return rowCount === 1;
}

/** Gives a turn back, unless another worker has it. One statement. */
export async function endTurn(db: Knex, { name, holder }: Turn): Promise<void> {
  await db.raw("update inbox.tasks set holder = null, held_until = null where name = :name and holder = :holder", {
    name,
    holder,
  });
}
