import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import type { Clock } from "../../../platform/clock.ts";
import { type Log, safeReason } from "../../../platform/log.ts";
import type { Random } from "../../../platform/random.ts";
import { type RetryPolicy, retryDelayMs } from "../../../platform/retry-delay.ts";
import { runEvery } from "../../../platform/run-every.ts";
import { appliedContext, endSpan, isTracing, startSpan, withinSpan } from "../../../platform/tracing/tracing.ts";
import { DeadlineExceeded } from "./attempt.ts";
import { isRetryLater } from "./define-handler.ts";
import { planRuns, registerRecipient } from "./plan-runs.ts";
import { mostPostponements, postponementOf } from "./postpone.ts";
import {
  type Attempt,
  AttemptFailed,
  type FailureFacts,
  type Recipient,
  type SourceName,
  type Work,
} from "./recipient.ts";
import {
  type ClaimRequest,
  type ClaimedRun,
  claimProbes,
  claimRuns,
  countDone,
  pauseAfterRefusal,
  pauseIfAllFail,
  putOffRun,
  removeDone,
  removeOwn,
  resumeAfterSuccess,
} from "./runs.ts";

export interface DispatchDeps {
  /** Plans, claims and completes runs: two connections are enough. */
  db: Knex;
  log: Log;
  clock: Clock;
  random: Random;
  /** The place of "now" for recipients that begin there; absent or null: where their source is at their first round. */
  now?: number | null;
  /** Called with the recipient's name right before each attempt. */
  onBegin?: (name: string) => void;
}

export interface DispatchOptions {
  /** Interval between two polls for new rows and due runs. */
  pollMs: number;
  /** Added to a recipient's deadline: the time to get a connection, and to mark a run done. */
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
  /** The recipients that have calls in progress, those whose deadlines are over among them. */
  running(): string[];
  /** The recipients of calls that outlast their deadlines: one for each call. */
  overdue(): string[];
  /** Claims no more runs, and waits for the attempts in progress, until their deadlines at most. */
  close(): Promise<void>;
}

const afterFailureMs = 1_000;

/**
 * Delivers new rows of the sources to the recipients until it is closed. Any number of processes may run it together. A
 * recipient gets the items of one object one after another and those of different objects in parallel, each at least
 * once.
 */
export function startDispatch<R extends Recipient>(
  deps: DispatchDeps,
  recipients: readonly R[],
  work: Work<R>,
  { pollMs, leaseMarginMs, retry }: DispatchOptions = defaultOptions,
): RunningDispatch {
  const { db, log, clock, random } = deps;
  const closing = new AbortController();
  const byName = new Map(recipients.map((recipient) => [recipient.name, recipient]));
  const unregistered = new Set(recipients);
  /** The number of runs of each recipient in progress in this process. */
  const running = new Map<string, number>();
  /** Until when a recipient rests, by `performance.now()`. */
  const heldUntilMs = new Map<string, number>();
  const attempts = new Set<Promise<void>>();
  /** Keyed by call. */
  const overdue = new Map<Promise<void>, string>();
  const completer = createCompleter(deps, () => loop.nudge());
  let places = new Map<string, HandlerPlace>();
  let lastPlannedMs = Number.NEGATIVE_INFINITY;

  async function round(): Promise<{ more: boolean }> {
    try {
      for (const recipient of unregistered) {
        await registerRecipient(db, recipient, work.sourceOf(recipient), deps.now);
        unregistered.delete(recipient);
      }
      const isPlanDue = performance.now() - lastPlannedMs >= pollMs;
      const more = isPlanDue && (await plan());
      await claim();
      return { more };
    } catch (err) {
      log.warn({ err }, "what is new could not be given to its recipients");
      await pause(afterFailureMs);
      return { more: false };
    }
  }

  /** Returns whether there is more to plan. */
  async function plan(): Promise<boolean> {
    const startedMs = performance.now();
    const sources = recipients.map((recipient) => work.sourceOf(recipient));
    const until = new Map<SourceName, number>();
    for (const source of new Map(sources.map((each) => [each.name, each])).values()) {
      until.set(source.name, await source.readableUntil(db));
    }
    places = await readPlaces(db, [...byName.keys()]);
    let more = false;
    for (const [n, { name }] of recipients.entries()) {
      const [place, source] = [places.get(name), sources[n]];
      if (place === undefined || source === undefined || place.pausedBy === "person") continue;
      if (place.position >= (until.get(source.name) ?? 0)) continue;
      const planned = await planRuns(db, name, source);
      more ||= planned.more;
    }
    if (!more) lastPlannedMs = startedMs;
    return more;
  }

  async function claim(): Promise<void> {
    const nowMs = performance.now();
    const wanted = recipients.flatMap(({ name, concurrency, deadlineMs }): ClaimRequest[] => {
      if ((heldUntilMs.get(name) ?? 0) > nowMs) return [];
      const free = concurrency - (running.get(name) ?? 0);
      return free > 0 ? [{ handler: name, free, leaseMs: deadlineMs + leaseMarginMs }] : [];
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

  async function begin(runs: readonly ClaimedRun[]): Promise<void> {
    const claimed = runs.flatMap((run) => {
      const recipient = byName.get(run.handler);
      return recipient === undefined ? [] : [{ recipient, run }];
    });
    let ready: Attempt[];
    try {
      ready = await work.prepare(claimed);
    } catch (error) {
      const again = { delayMs: afterFailureMs, error: null, isFailure: false, isPostponed: false };
      for (const { run } of claimed) await putOffRun(db, run, again);
      throw error;
    }
    claimed.forEach(({ recipient: { name, attempts: most }, run }, n) => {
      const prepared = ready[n];
      if (prepared === undefined) return;
      running.set(name, (running.get(name) ?? 0) + 1);
      deps.onBegin?.(name);
      const attempt = execute(run, prepared, most).finally(() => {
        attempts.delete(attempt);
        running.set(name, (running.get(name) ?? 1) - 1);
      });
      attempts.add(attempt);
    });
  }

  async function execute(run: ClaimedRun, attempt: Attempt, most: number): Promise<void> {
    const span = isTracing() ? startRunSpan(run, attempt) : null;
    try {
      // Killed processes have used up its attempts: it may be what kills them.
      if (run.attempt > most && !run.isProbe) throw new ProcessEnded();
      await withinSpan(span, () => attempt.make((trx) => finishOwn(trx, run)));
      endSpan(span);
      // Outside the span: the work started here outlasts it.
      completer.add(run, { isRemoved: attempt.removesRun });
    } catch (error) {
      await withinSpan(span, () => executionFailed(run, most, error));
      endSpan(span, isRetryLater(error) ? null : safeReason(error));
    }
  }

  async function executionFailed(run: ClaimedRun, most: number, error: unknown): Promise<void> {
    if (error instanceof TakenOver) {
      log.warn({ handler: run.handler, change: run.seq }, takenOver);
      return;
    }
    if (error instanceof DeadlineExceeded) noteOverdue(run.handler, error.call);
    await fail(run, most, error);
  }

  function noteOverdue(name: string, call: Promise<void>): void {
    const ended = () => void overdue.delete(call);
    overdue.set(call, name);
    call.then(ended, ended);
  }

  async function fail(run: ClaimedRun, maxAttempts: number, error: unknown): Promise<void> {
    const postponement = postponementOf(error, run.postponed, clock.now());
    const isPostponed = postponement?.isAttempt === false;
    const facts: FailureFacts = error instanceof AttemptFailed ? error.facts : {};
    const delayMs = isPostponed
      ? postponement.delayMs
      : delayOf(run, maxAttempts, {
          ...facts,
          holdMs: facts.holdMs ?? postponement?.delayMs ?? null,
        });
    const isFailure = !isPostponed && !run.isProbe;
    const fields = { handler: run.handler, change: run.seq, attempt: run.attempt };
    const reason = reasonOf(error);
    const { holdMs = null, isRefusal = false } = facts;
    if (holdMs !== null) heldUntilMs.set(run.handler, performance.now() + holdMs);
    try {
      if (!(await putOffRun(db, run, { delayMs, error: reason, isFailure, isPostponed }))) {
        log.warn(fields, takenOver);
        return;
      }
      if (isPostponed) {
        const times = run.postponed + 1;
        if (isPowerOfTen(times)) log.warn({ ...fields, times, retryInMs: delayMs }, putOffText);
      } else {
        const what = delayMs === null ? "a change is dead for a handler" : "a handler failed";
        log.warn({ ...fields, err: error, retryInMs: delayMs }, what);
      }
      if (isRefusal && (await pauseAfterRefusal(db, run.handler, reason))) {
        log.error({ handler: run.handler, reason }, "a handler is paused: it wants nothing more");
      } else if (isFailure && (await pauseIfAllFail(db, run.handler, reason))) {
        log.error({ handler: run.handler }, "a handler is paused: it failed for all objects");
      }
    } catch (err) {
      // The lease ends, and the run is claimed again.
      log.warn({ ...fields, err }, "the failure of a handler could not be noted");
    }
  }

  /** Null: the run is dead. */
  function delayOf(run: ClaimedRun, maxAttempts: number, facts: FailureFacts): number | null {
    if (facts.isFinal === true) return null;
    // A run tried during a pause must not become dead by it.
    const delayMs = run.isProbe ? retry.baseDelayMs : retryDelayMs({ ...retry, maxAttempts }, run.attempt, random);
    return delayMs === null ? null : Math.max(delayMs, facts.holdMs ?? 0);
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

/** A trace of its own, since a run may come long after its cause, and repeatedly. */
const startRunSpan = (run: ClaimedRun, { eventSeq }: Attempt) =>
  startSpan(`process ${run.handler}`, {
    kind: "consumer",
    facts: {
      "messaging.system": "tallyhook",
      "messaging.operation.type": "process",
      "messaging.operation.name": "run",
      "messaging.destination.name": run.handler,
      "tallyhook.run.seq": run.seq,
      "tallyhook.run.attempt": run.attempt,
      "tallyhook.inbox.seq": eventSeq,
    },
    links: [eventSeq === null ? null : appliedContext(eventSeq)],
  });

/** In our own words, or the name of the thrown error: its message may quote personal data. */
const reasonOf = (error: unknown): string =>
  error instanceof AttemptFailed ? error.message : isRetryLater(error) ? "RetryLater" : safeReason(error);

/** Logged the first time, the tenth, and so on: a change may be postponed a thousand times. */
const isPowerOfTen = (times: number): boolean => Number.isInteger(Math.log10(times));

const putOffText =
  "a handler asks for another time; a change that is put off more than " +
  `${mostPostponements} times loses an attempt each time`;

const takenOver = "a handler took so long that another process has its change now";

/** Not the handler's failure: its transaction is rolled back because another process has taken the change over. */
class TakenOver extends Error {
  override readonly name = "TakenOver";
}

class ProcessEnded extends Error {
  override readonly name = "ProcessEndedWhileItRan";
}

async function finishOwn(trx: Knex.Transaction, run: ClaimedRun): Promise<void> {
  if (!(await removeOwn(trx, run))) throw new TakenOver();
}

interface HandlerPlace {
  position: number;
  pausedBy: "person" | "failures" | "subscriber" | null;
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
  /** A run was done. One that is removed already has only to be counted. */
  add(run: ClaimedRun, state: { isRemoved: boolean }): void;
  /** Waits until all is marked done. While the database is away it gives up: those runs come again. */
  close(): Promise<void>;
}

interface DoneRuns {
  runs: ClaimedRun[];
  removed: number;
  isProbed: boolean;
}

/**
 * Removes and counts runs that are done: of each handler all that were done during the last statement, in one. Then
 * calls `onRemoved`, since the next runs of their objects can be claimed.
 */
function createCompleter({ db, log }: DispatchDeps, onRemoved: () => void): Completer {
  const done = new Map<string, DoneRuns>();
  let working: Promise<void> | null = null;
  let isClosing = false;

  function addDone(handler: string, { runs, removed, isProbed }: DoneRuns): void {
    const of = done.get(handler) ?? { runs: [], removed: 0, isProbed: false };
    of.runs.push(...runs);
    of.removed += removed;
    of.isProbed ||= isProbed;
    done.set(handler, of);
  }

  async function work(): Promise<void> {
    // Runs of one turn are handled together.
    await new Promise((resolve) => setImmediate(resolve));
    for (let [next] = done; next !== undefined; [next] = done) {
      const [handler, of] = next;
      done.delete(handler);
      try {
        await complete(handler, of);
        onRemoved();
      } catch (err) {
        log.warn({ err, handler, runs: of.runs.length }, "runs could not be marked done");
        if (isClosing) continue;
        addDone(handler, of);
        await sleep(afterFailureMs);
      }
    }
    working = null;
  }

  /** Forgets each part that it has done, so that it can be repeated. */
  async function complete(handler: string, of: DoneRuns): Promise<void> {
    if (of.runs.length > 0) {
      const removed = await removeDone(db, handler, of.runs);
      const lost = of.runs.filter(({ seq }) => !removed.has(seq));
      for (const { seq } of lost) log.warn({ handler, change: seq }, takenOver);
      of.runs = [];
    }
    if (of.removed > 0) {
      await countDone(db, handler, of.removed);
      of.removed = 0;
    }
    if (of.isProbed && (await resumeAfterSuccess(db, handler))) {
      log.info({ handler }, "a handler works again");
    }
  }

  return {
    add(run, { isRemoved }) {
      // Its object's next run need not wait for the count.
      if (isRemoved) onRemoved();
      const runs = isRemoved ? [] : [run];
      addDone(run.handler, { runs, removed: isRemoved ? 1 : 0, isProbed: run.isProbe });
      working ??= work();
    },
    async close() {
      isClosing = true;
      await working;
    },
  };
}
