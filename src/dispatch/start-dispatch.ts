import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import { readableUntil } from "../feed/changes.ts";
import { safeReason } from "../platform/log.ts";
import type { Random } from "../platform/random.ts";
import { type RetryPolicy, retryDelayMs } from "../platform/retry-delay.ts";
import { runEvery } from "../platform/run-every.ts";
import { type AttemptDeps, DeadlineExceeded, attemptRun, idempotencyKeyOf } from "./attempt.ts";
import { type Handler, retryLaterMs } from "./define-handler.ts";
import { planRuns, registerHandler } from "./plan-runs.ts";
import { type HandledObject, readObjects } from "./read-objects.ts";
import {
  type ClaimRequest,
  type ClaimedRun,
  claimProbes,
  claimRuns,
  pauseIfAllFail,
  putOffRun,
  removeDone,
  resumeAfterSuccess,
} from "./runs.ts";

export interface DispatchDeps extends AttemptDeps {
  /** Plans, claims and completes runs: two connections are enough. */
  db: Knex;
  random: Random;
  /** Is told of a handler right before it is called, and before anything else can happen. */
  onBegin?: (handler: string) => void;
}

export interface DispatchOptions {
  /** Between two looks for changes, and for runs that are due. */
  pollMs: number;
  /** Added to a handler's deadline: the time to get a connection, and to mark a run done. */
  leaseMarginMs: number;
  retry: Omit<RetryPolicy, "maxAttempts">;
}

const defaultOptions: DispatchOptions = {
  pollMs: 100,
  leaseMarginMs: 20_000,
  retry: { baseDelayMs: 5_000, maxDelayMs: 3_600_000 },
};

export interface RunningDispatch {
  /** Milliseconds since it last showed that it does not hang. Clock changes do not affect it. */
  sinceProgressMs(): number;
  /** The handlers that have calls in progress, those whose deadlines are over among them. */
  running(): string[];
  /** The handlers of calls that go on though their deadlines are over: one for each call. */
  overdue(): string[];
  /** Claims nothing more, and waits for the handlers that run, until their deadlines at most. */
  close(): Promise<void>;
}

const afterFailureMs = 1_000;

/**
 * Runs handlers on the changes of the feed until it is closed. Any number of processes may do so beside each other. A
 * handler's changes of one object come one after another, those of different objects side by side, each at least once.
 */
export function startDispatch(
  deps: DispatchDeps,
  handlers: readonly Handler[],
  { pollMs, leaseMarginMs, retry }: DispatchOptions = defaultOptions,
): RunningDispatch {
  const { db, log, random } = deps;
  const closing = new AbortController();
  const byName = new Map(handlers.map((handler) => [handler.name, handler]));
  const unregistered = new Set(handlers);
  /** How many runs of each handler are in progress here. */
  const running = new Map<string, number>();
  const attempts = new Set<Promise<void>>();
  /** By the calls. */
  const overdue = new Map<Promise<void>, string>();
  const completer = createCompleter(deps, () => loop.nudge());
  let places = new Map<string, HandlerPlace>();
  let lastPlannedMs = Number.NEGATIVE_INFINITY;

  async function round(): Promise<{ more: boolean }> {
    try {
      for (const handler of unregistered) {
        await registerHandler(db, handler);
        unregistered.delete(handler);
      }
      const isPlanDue = performance.now() - lastPlannedMs >= pollMs;
      const more = isPlanDue && (await plan());
      await claim();
      return { more };
    } catch (err) {
      log.warn({ err }, "handlers could not be given their changes");
      await pause(afterFailureMs);
      return { more: false };
    }
  }

  /** Returns whether there is more to plan. */
  async function plan(): Promise<boolean> {
    const startedMs = performance.now();
    const until = await readableUntil(db);
    places = await readPlaces(db, [...byName.keys()]);
    let more = false;
    for (const handler of handlers) {
      const place = places.get(handler.name);
      if (place === undefined || place.pausedBy === "person" || place.position >= until) continue;
      const planned = await planRuns(db, handler);
      more ||= planned.more;
    }
    if (!more) lastPlannedMs = startedMs;
    return more;
  }

  async function claim(): Promise<void> {
    const wanted = handlers.flatMap((handler): ClaimRequest[] => {
      const free = handler.concurrency - (running.get(handler.name) ?? 0);
      const leaseMs = handler.deadlineMs + leaseMarginMs;
      return free > 0 ? [{ handler: handler.name, free, leaseMs }] : [];
    });
    const isPaused = ({ handler }: ClaimRequest) => places.get(handler)?.pausedBy != null;
    const isProbed = ({ handler }: ClaimRequest) => places.get(handler)?.isProbeDue === true;
    const claimed = [
      ...(await claimRuns(
        db,
        wanted.filter((each) => !isPaused(each)),
      )),
      ...(await claimProbes(db, wanted.filter(isProbed))),
    ];
    if (claimed.length > 0) await begin(claimed);
  }

  async function begin(claimed: readonly ClaimedRun[]): Promise<void> {
    let objects: (HandledObject | null)[];
    try {
      objects = await readObjects(
        db,
        claimed.map(({ change }) => change),
      );
    } catch (error) {
      const again = { delayMs: afterFailureMs, error: null, isFailure: false };
      for (const run of claimed) await putOffRun(db, run, again);
      throw error;
    }
    claimed.forEach((run, n) => {
      const handler = byName.get(run.handler);
      if (handler === undefined) return;
      running.set(run.handler, (running.get(run.handler) ?? 0) + 1);
      deps.onBegin?.(run.handler);
      const attempt = execute(handler, run, objects[n] ?? null).finally(() => {
        attempts.delete(attempt);
        running.set(run.handler, (running.get(run.handler) ?? 1) - 1);
      });
      attempts.add(attempt);
    });
  }

  async function execute(
    handler: Handler,
    run: ClaimedRun,
    object: HandledObject | null,
  ): Promise<void> {
    const { change } = run;
    try {
      // Killed processes have used up its attempts: it may be what kills them.
      if (run.attempt > handler.attempts && !run.isProbe) throw new ProcessEnded();
      const idempotencyKey = idempotencyKeyOf(handler.name, change);
      await attemptRun(deps, handler, { change, object, idempotencyKey, isTest: false }, (trx) =>
        removeOwn(trx, run),
      );
      completer.add(run, { isRemoved: handler.transactional });
    } catch (error) {
      if (error instanceof TakenOver) {
        log.warn({ handler: run.handler, change: run.seq }, takenOver);
        return;
      }
      if (error instanceof DeadlineExceeded) noteOverdue(run.handler, error.call);
      await fail(handler, run, error);
    }
  }

  function noteOverdue(handler: string, call: Promise<void>): void {
    const ended = () => void overdue.delete(call);
    overdue.set(call, handler);
    call.then(ended, ended);
  }

  async function fail(handler: Handler, run: ClaimedRun, error: unknown): Promise<void> {
    const laterMs = retryLaterMs(error);
    // What is tried while the handler is paused must not die of it.
    const delayMs =
      laterMs ??
      (run.isProbe
        ? retry.baseDelayMs
        : retryDelayMs({ ...retry, maxAttempts: handler.attempts }, run.attempt, random));
    const isFailure = laterMs === null && !run.isProbe;
    const fields = { handler: run.handler, change: run.seq, attempt: run.attempt };
    const reason = safeReason(error);
    try {
      if (!(await putOffRun(db, run, { delayMs, error: reason, isFailure }))) {
        log.warn(fields, takenOver);
        return;
      }
      if (laterMs === null) {
        const what = delayMs === null ? "a change is dead for a handler" : "a handler failed";
        log.warn({ ...fields, err: error, retryInMs: delayMs }, what);
      }
      if (isFailure && (await pauseIfAllFail(db, run.handler, reason))) {
        log.error({ handler: run.handler }, "a handler is paused: it failed for all objects");
      }
    } catch (err) {
      // The lease ends, and the run is claimed again.
      log.warn({ ...fields, err }, "the failure of a handler could not be noted");
    }
  }

  const pause = (ms: number) => sleep(ms, undefined, { signal: closing.signal }).catch(() => {});
  const loop = runEvery({ log, name: "handlers" }, pollMs, round);

  return {
    sinceProgressMs: () => loop.sinceProgressMs(),
    running() {
      const begun = [...running].flatMap(([handler, runs]) => (runs > 0 ? [handler] : []));
      return [...new Set([...begun, ...overdue.values()])];
    },
    overdue: () => [...overdue.values()],
    async close() {
      closing.abort();
      await loop.close();
      await Promise.all(attempts);
      await completer.close();
    },
  };
}

const takenOver = "a handler took so long that another process has its change now";

/** Not the handler's failure: its transaction is rolled back, since the change is another process's now. */
class TakenOver extends Error {
  override readonly name = "TakenOver";
}

class ProcessEnded extends Error {
  override readonly name = "ProcessEndedWhileItRan";
}

async function removeOwn(trx: Knex.Transaction, run: ClaimedRun): Promise<void> {
  const removed = await removeDone(trx, run.handler, [run]);
  if (!removed.has(run.seq)) throw new TakenOver();
}

interface HandlerPlace {
  position: number;
  pausedBy: "person" | "failures" | null;
  isProbeDue: boolean;
}

async function readPlaces(db: Knex, names: readonly string[]): Promise<Map<string, HandlerPlace>> {
  const rows = await db("dispatch.handlers")
    .whereIn("name", [...names])
    .select<
      {
        name: string;
        position: string;
        paused_by: HandlerPlace["pausedBy"];
        is_probe_due: boolean | null;
      }[]
    >("name", "position", "paused_by", db.raw("probe_at <= now() as is_probe_due"));
  return new Map(
    rows.map(({ name, position, paused_by: pausedBy, is_probe_due: isProbeDue }) => [
      name,
      { position: Number(position), pausedBy, isProbeDue: isProbeDue === true },
    ]),
  );
}

interface Completer {
  /** A run was done. One that is removed already has only to be told of. */
  add(run: ClaimedRun, state: { isRemoved: boolean }): void;
  /** Waits until all is marked done. While the database is away it gives up: those runs come again. */
  close(): Promise<void>;
}

/**
 * Removes runs that are done: of each handler all that were done during the last statement, in one. Then calls
 * `onRemoved`, since the next runs of their objects can be claimed.
 */
function createCompleter({ db, log }: DispatchDeps, onRemoved: () => void): Completer {
  const done = new Map<string, ClaimedRun[]>();
  let working: Promise<void> | null = null;
  let isClosing = false;

  async function work(): Promise<void> {
    // What is done in the same turn goes together.
    await new Promise((resolve) => setImmediate(resolve));
    for (let [next] = done; next !== undefined; [next] = done) {
      const [handler, runs] = next;
      done.delete(handler);
      try {
        const removed = await removeDone(db, handler, runs);
        const lost = runs.filter(({ seq }) => !removed.has(seq));
        for (const { seq } of lost) log.warn({ handler, change: seq }, takenOver);
        if (runs.some(({ isProbe }) => isProbe)) await resume(handler);
        onRemoved();
      } catch (err) {
        log.warn({ err, handler, runs: runs.length }, "runs could not be marked done");
        if (isClosing) continue;
        done.set(handler, [...runs, ...(done.get(handler) ?? [])]);
        await sleep(afterFailureMs);
      }
    }
    working = null;
  }

  async function resume(handler: string): Promise<void> {
    if (await resumeAfterSuccess(db, handler)) log.info({ handler }, "a handler works again");
  }

  return {
    add(run, { isRemoved }) {
      if (isRemoved) {
        onRemoved();
        if (!run.isProbe) return;
        resume(run.handler).catch((err: unknown) =>
          log.warn({ err, handler: run.handler }, "a handler could not be resumed"),
        );
        return;
      }
      done.set(run.handler, [...(done.get(run.handler) ?? []), run]);
      working ??= work();
    },
    async close() {
      isClosing = true;
      await working;
    },
  };
}
