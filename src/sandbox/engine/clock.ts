import type { Clock } from "../../platform/clock.ts";
import type { Mode } from "./keys.ts";
import { createHeap } from "./heap.ts";

/** Something to do at a time of the sandbox. Data rather than a closure, so that a state with its jobs can be written down. */
export interface Job {
  atMs: number;
  kind: "billing" | "dunning" | "completion" | "chargeback" | "settlement" | "delivery";
  merchant: string;
  mode: Mode;
  /** The object it is about. Whoever runs the job looks at its state then: a job that no longer applies does nothing. */
  id: string;
}

export type ClockMode = "real" | "manual";

/** The sandbox's time, and what falls due in it. */
export interface Timeline extends Clock {
  nowMs(): number;
  /** `now()` as the service writes it: ISO 8601, UTC, milliseconds. */
  iso(): string;
  readonly mode: ClockMode;
  /** When what fell due at `dueMs` happens: then, if the clock was moved past it, otherwise now. */
  momentOf(dueMs: number): number;
  /** Which move of the clock passed what fell due then; null for what is due when the clock arrived, or since. */
  movePassing(dueMs: number): number | null;
  /** Runs `work` as one moment: until it returns, which for asynchronous work is its first wait, the clock stands. */
  atOneMoment<T>(work: () => T): T;
  schedule(job: Job): void;
  /** Whether a job is due now and not done. */
  hasDue(): boolean;
  /** Shifts the clock; it keeps running if it ran. Resolves when the jobs that fell due are done. */
  advance(ms: number): Promise<void>;
  /** Makes the clock manual and sets it, also backwards. Resolves when the jobs that fell due are done. */
  setNow(date: Date): Promise<void>;
  /**
   * What a running clock missed while the sandbox was stopped: jobs happen at their own times, deliveries after it, so that
   * a receiver that starts beside the sandbox still gets them.
   */
  catchUp(ms: number): Promise<void>;
  /**
   * Runs `work` with the clock stopped; `work` moves it by `moveTo`, which does the jobs that fall due on the way
   * except deliveries. A clock that ran goes on from where it was left.
   */
  whileStopped<T>(work: (moveTo: (ms: number) => void) => Promise<T>): Promise<T>;
  /** What is still to be done, soonest first. */
  planned(): Job[];
  /** Takes up a time and a mode without running anything; what was planned is planned anew by the caller. */
  restore(to: { nowMs: number; mode: ClockMode }): void;
  close(): void;
}

export interface TimelineDeps {
  wallClock: Clock;
  run: (job: Job) => void;
}

/** `setTimeout` takes no more than this. */
const longestTimerMs = 2 ** 31 - 1;
/** How many jobs run before other work of the process gets its turn. */
const jobsPerTurn = 200;

interface QueuedJob extends Job {
  seq: number;
}

export function createTimeline(deps: TimelineDeps): Timeline {
  const isSooner = (a: QueuedJob, b: QueuedJob) =>
    a.atMs < b.atMs || (a.atMs === b.atMs && a.seq < b.seq);
  const jobs = createHeap<QueuedJob>(isSooner);
  // Apart from the rest: attempts to deliver have no effect on the state, and a generator of traffic that
  // covers months in a second must not burn the retries of a receiver that was away for a moment.
  const deliveries = createHeap<QueuedJob>(isSooner);
  let nextSeq = 0;
  let offsetMs = 0;
  /** The time while a job runs, while stopped, and in manual mode. */
  let fixedMs: number | null = null;
  let mode: ClockMode = "real";
  let latestMs = -Infinity;
  /** Where the last move of the clock ends. */
  let movedToMs = -Infinity;
  let moves = 0;
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
    standingAt(Math.max(job.atMs, nowMs()), () => deps.run(job));
    return true;
  }

  /** A clock that runs goes on afterwards; a stopped one stays there, since what follows must not be earlier. */
  function standingAt<T>(ms: number, work: () => T): T {
    const ran = fixedMs === null;
    fixedMs = ms;
    latestMs = Math.max(latestMs, ms);
    try {
      return work();
    } finally {
      if (ran) fixedMs = null;
    }
  }

  /** Moves of the clock come one after the other. */
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

  /** To `targetMs` with every job on the way at its own time. The clock is stopped meanwhile. */
  async function travel(targetMs: number): Promise<void> {
    fixedMs = Math.min(nowMs(), targetMs);
    movedToMs = targetMs;
    moves += 1;
    for (let done = 1; !isClosed && runNext(targetMs, true); done++) {
      if (done % jobsPerTurn === 0) await new Promise(setImmediate);
    }
    fixedMs = targetMs;
  }

  function goOnFrom(ms: number): void {
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
    momentOf: (dueMs) => (dueMs <= movedToMs ? dueMs : nowMs()),
    movePassing: (dueMs) => (dueMs < movedToMs ? moves : null),
    atOneMoment: (work) => standingAt(nowMs(), work),
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
      return [jobs.peek(), deliveries.peek()].some(
        (job) => job !== undefined && job.atMs <= untilMs,
      );
    },
    advance: (ms) =>
      exclusively(async () => {
        const targetMs = nowMs() + ms;
        await travel(targetMs);
        goOnFrom(targetMs);
      }),
    setNow: (date) =>
      exclusively(async () => {
        mode = "manual";
        await travel(date.getTime());
        goOnFrom(date.getTime());
      }),
    whileStopped: (work) =>
      exclusively(async () => {
        fixedMs = nowMs();
        const moveTo = (ms: number) => {
          while (runNext(ms, false));
          fixedMs = Math.max(ms, nowMs());
        };
        try {
          return await work(moveTo);
        } finally {
          goOnFrom(nowMs());
        }
      }),
    catchUp: (ms) =>
      exclusively(async () => {
        const targetMs = nowMs() + ms;
        fixedMs = nowMs();
        for (let done = 1; !isClosed && runNext(targetMs, false); done++) {
          if (done % jobsPerTurn === 0) await new Promise(setImmediate);
        }
        goOnFrom(targetMs);
      }),
    planned: () =>
      [...jobs.entries(), ...deliveries.entries()]
        .sort((a, b) => a.atMs - b.atMs || a.seq - b.seq)
        .map(({ seq: _seq, ...job }) => job),
    restore(to) {
      mode = to.mode;
      goOnFrom(to.nowMs);
    },
    close() {
      isClosed = true;
      if (timer !== undefined) clearTimeout(timer);
    },
  };
}
