import type { Clock } from "../../../platform/clock.ts";
import type { Mode } from "./keys.ts";
import { createHeap } from "./heap.ts";

/** Something to do at a time of the sandbox's clock. It is data, not a closure, so that a saved state can hold it. */
export interface Job {
  atMs: number;
  kind: "billing" | "dunning" | "completion" | "chargeback" | "settlement" | "delivery";
  merchant: string;
  mode: Mode;
  /** The job's object. The job reads the object's state when it runs, and does nothing if it no longer applies. */
  id: string;
}

export type ClockMode = "real" | "manual";

/** The sandbox's clock, and the jobs that fall due on it. */
export interface SandboxClock extends Clock {
  nowMs(): number;
  /** `now()` as the service writes it: ISO 8601, UTC, milliseconds. */
  iso(): string;
  readonly mode: ClockMode;
  /** The time at which a job due at `dueMs` happens: `dueMs` if the last jump reached it, otherwise now. */
  effectiveTimeOf(dueMs: number): number;
  /**
   * The number of the last jump (`advance` or `setNow`) if it ended after `dueMs`; null for jobs that were due at its
   * end or later. `catchUp` and `drive` are no jumps: neither makes deliveries on its way.
   */
  jumpOver(dueMs: number): number | null;
  /** Runs `work` with the clock stopped until it returns; asynchronous work returns at its first wait. */
  freezeDuring<T>(work: () => T): T;
  schedule(job: Job): void;
  /** Whether a job is due and has not run yet. */
  hasDue(): boolean;
  /** Shifts the clock, which keeps running if it ran. Resolves when the jobs that fell due are done. */
  advance(ms: number): Promise<void>;
  /** Makes the clock manual and sets it, backwards too. Resolves when the jobs that fell due are done. */
  setNow(date: Date): Promise<void>;
  /**
   * Catches up on the time that a running clock missed while the sandbox was stopped. Jobs happen at their own times.
   * Deliveries happen afterwards, so that a receiver that starts together with the sandbox still gets them.
   */
  catchUp(ms: number): Promise<void>;
  /**
   * Stops the clock and lets `work` drive it by `moveTo`, which runs the jobs that fall due on the way, except
   * deliveries. A running clock resumes from where `work` left it.
   */
  drive<T>(work: (moveTo: (ms: number) => void) => Promise<T>): Promise<T>;
  /** The jobs that have not run yet, soonest first. */
  planned(): Job[];
  /** Sets time and mode without running anything. The caller plans the jobs again. */
  restore(to: { nowMs: number; mode: ClockMode }): void;
  close(): void;
}

export interface SandboxClockDeps {
  wallClock: Clock;
  run: (job: Job) => void;
}

/** The longest delay that `setTimeout` takes. */
const longestTimerMs = 2 ** 31 - 1;
/** The number of jobs that `advance`, `setNow` and `catchUp` run before the rest of the process gets a turn. */
const jobsPerTurn = 200;

interface QueuedJob extends Job {
  seq: number;
}

export function createSandboxClock(deps: SandboxClockDeps): SandboxClock {
  const isSooner = (a: QueuedJob, b: QueuedJob) => a.atMs < b.atMs || (a.atMs === b.atMs && a.seq < b.seq);
  const jobs = createHeap<QueuedJob>(isSooner);
  // Deliveries have a queue of their own. Attempts do not affect the state, and generated traffic that covers months in
  // a second must not use up the retries of a receiver that was briefly away.
  const deliveries = createHeap<QueuedJob>(isSooner);
  let nextSeq = 0;
  let offsetMs = 0;
  /** The fixed time: while a job runs, while the clock is stopped, and in manual mode. Null while it runs. */
  let fixedMs: number | null = null;
  let mode: ClockMode = "real";
  let latestMs = -Infinity;
  /** The end of the last jump. */
  let jumpedToMs = -Infinity;
  let jumps = 0;
  let stampedMs = Number.NaN;
  let stamp = "";
  let timer: NodeJS.Timeout | undefined;
  let turn: Promise<unknown> = Promise.resolve();
  let isMoving = false;
  let isClosed = false;

  function nowMs(): number {
    if (fixedMs !== null) return fixedMs;
    latestMs = Math.max(latestMs, deps.wallClock.now().getTime() + offsetMs);
    return latestMs;
  }

  function iso(): string {
    const ms = nowMs();
    if (ms !== stampedMs) {
      stampedMs = ms;
      stamp = new Date(ms).toISOString();
    }
    return stamp;
  }

  function popDue(untilMs: number, withDeliveries: boolean): QueuedJob | undefined {
    const job = jobs.peek();
    const delivery = withDeliveries ? deliveries.peek() : undefined;
    const isDelivery = delivery !== undefined && (job === undefined || isSooner(delivery, job));
    const next = isDelivery ? delivery : job;
    if (next === undefined || next.atMs > untilMs) return undefined;
    return (isDelivery ? deliveries : jobs).pop();
  }

  function runNext(untilMs: number, withDeliveries: boolean): boolean {
    const job = popDue(untilMs, withDeliveries);
    if (job === undefined) return false;
    runAt(Math.max(job.atMs, nowMs()), () => deps.run(job));
    return true;
  }

  /**
   * Runs `work` with the clock fixed at `ms`. A running clock then resumes; a stopped one stays there, since what
   * follows must not be earlier.
   */
  function runAt<T>(ms: number, work: () => T): T {
    const ran = fixedMs === null;
    fixedMs = ms;
    latestMs = Math.max(latestMs, ms);
    try {
      return work();
    } finally {
      if (ran) fixedMs = null;
    }
  }

  /** Runs moves of the clock one after the other. */
  function exclusively<T>(work: () => Promise<T>): Promise<T> {
    const result = turn.then(async () => {
      isMoving = true;
      try {
        return await work();
      } finally {
        isMoving = false;
        wake();
      }
    });
    turn = result.catch(() => undefined);
    return result;
  }

  /**
   * Moves the clock to `targetMs` and runs every job on the way at its own time. The clock is stopped during the jump.
   */
  async function jumpTo(targetMs: number): Promise<void> {
    fixedMs = Math.min(nowMs(), targetMs);
    jumpedToMs = targetMs;
    jumps += 1;
    for (let done = 1; !isClosed && runNext(targetMs, true); done++) {
      if (done % jobsPerTurn === 0) await new Promise(setImmediate);
    }
    fixedMs = targetMs;
  }

  function resumeFrom(ms: number): void {
    latestMs = ms;
    if (mode === "manual") {
      fixedMs = ms;
    } else {
      offsetMs = ms - deps.wallClock.now().getTime();
      fixedMs = null;
    }
  }

  function wake(): void {
    if (timer !== undefined) clearTimeout(timer);
    timer = undefined;
    if (isClosed || isMoving) return;
    const untilMs = nowMs();
    while (runNext(untilMs, true));
    if (mode === "manual") return;
    const nextMs = Math.min(jobs.peek()?.atMs ?? Infinity, deliveries.peek()?.atMs ?? Infinity);
    if (nextMs === Infinity) return;
    timer = setTimeout(wake, Math.min(Math.max(nextMs - nowMs(), 0), longestTimerMs));
  }

  return {
    now: () => new Date(nowMs()),
    nowMs,
    iso,
    effectiveTimeOf: (dueMs) => (dueMs <= jumpedToMs ? dueMs : nowMs()),
    jumpOver: (dueMs) => (dueMs < jumpedToMs ? jumps : null),
    freezeDuring: (work) => runAt(nowMs(), work),
    get mode() {
      return mode;
    },
    schedule(job) {
      const heap = job.kind === "delivery" ? deliveries : jobs;
      const wasNext = heap.peek();
      const queued = { ...job, seq: nextSeq++ };
      heap.push(queued);
      if (wasNext === undefined || isSooner(queued, wasNext)) setImmediate(wake);
    },
    hasDue() {
      const untilMs = nowMs();
      return [jobs.peek(), deliveries.peek()].some((job) => job !== undefined && job.atMs <= untilMs);
    },
    advance: (ms) =>
      exclusively(async () => {
        const targetMs = nowMs() + ms;
        await jumpTo(targetMs);
        resumeFrom(targetMs);
      }),
    setNow: (date) =>
      exclusively(async () => {
        mode = "manual";
        await jumpTo(date.getTime());
        resumeFrom(date.getTime());
      }),
    drive: (work) =>
      exclusively(async () => {
        fixedMs = nowMs();
        const moveTo = (ms: number) => {
          while (runNext(ms, false));
          fixedMs = Math.max(ms, nowMs());
        };
        try {
          return await work(moveTo);
        } finally {
          resumeFrom(nowMs());
        }
      }),
    catchUp: (ms) =>
      exclusively(async () => {
        const targetMs = nowMs() + ms;
        fixedMs = nowMs();
        for (let done = 1; !isClosed && runNext(targetMs, false); done++) {
          if (done % jobsPerTurn === 0) await new Promise(setImmediate);
        }
        resumeFrom(targetMs);
      }),
    planned: () =>
      [...jobs.entries(), ...deliveries.entries()]
        .sort((a, b) => a.atMs - b.atMs || a.seq - b.seq)
        .map(({ seq: _seq, ...job }) => job),
    restore(to) {
      mode = to.mode;
      resumeFrom(to.nowMs);
    },
    close() {
      isClosed = true;
      if (timer !== undefined) clearTimeout(timer);
    },
  };
}
