import { setTimeout as sleep } from "node:timers/promises";
import { isAnyUnapplied } from "../inbox/claim.ts";
import { type ApplyDeps, type Look, applyNext } from "./apply-batch.ts";

export interface ApplyLoop {
  /** Events were stored: takes what the inbox has, and stays awake for a while. */
  wake(): void;
  /** The same, from the first event on: an event may wait that the others have long passed. */
  sweep(): void;
  /** Milliseconds since the loop last showed that it does not hang. Clock changes do not affect it. */
  sinceProgressMs(): number;
  /** Takes no further batch and waits for those in progress. */
  close(): Promise<void>;
}

/** Longer than the time between two wake-ups of a receiver that is receiving (queue/wake-ups.ts), with room to spare. */
const awakeMs = 3_000;
/** Poll interval of an awake, idle worker: the longest wait that it adds to an event. */
const lookMs = 8;
const afterFailureMs = 1_000;

const nothing: Look = { events: 0, last: 0, isFull: false, leads: true };

/**
 * Applies events until none is left, then keeps polling for `awakeMs` before it sleeps until the next `wake`. A worker
 * that is awake takes whatever the inbox has, from any receiver and without a wake-up. So its batches are the events
 * that arrived during the last one: they grow with the load, and do not shrink with the number of receivers.
 *
 * `atOnce` batches are applied in parallel while more events wait than one takes. Where another worker applies events
 * already and few wait, this one goes to sleep.
 */
export function createApplyLoop(deps: ApplyDeps, { atOnce }: { atOnce: number }): ApplyLoop {
  const passed = createPassedMark();
  const closing = new AbortController();
  let isSweepAsked = true;
  let awakeUntilMs = 0;
  let leader: Promise<void> | null = null;
  const helpers = new Set<Promise<void>>();
  let lastProgressMs = performance.now();

  async function look(after: number): Promise<Look> {
    const found = await applyNext(deps, after);
    passed.note(found.last);
    lastProgressMs = performance.now();
    if (found.events > 0) awakeUntilMs = lastProgressMs + awakeMs;
    return found;
  }

  async function lead(): Promise<void> {
    let wasIdle = false;
    while (!closing.signal.aborted) {
      try {
        const after = isSweepAsked ? 0 : passed.mark();
        isSweepAsked = false;
        // An event that another transaction holds can be seen but not taken, so an idle poll is followed by a pause,
        // too.
        const found: Look = wasIdle && !(await isAnyUnapplied(deps.db, after)) ? nothing : await look(after);
        lastProgressMs = performance.now();
        wasIdle = found.events === 0;
        if (wasIdle) {
          if (!found.leads || (lastProgressMs > awakeUntilMs && !isSweepAsked)) break;
          await pause(lookMs);
          continue;
        }
        if (found.isFull) help();
        // A sweep ends where the other polls begin.
        if (found.last < passed.mark()) isSweepAsked = true;
      } catch (err) {
        deps.log.warn({ err }, "events could not be applied");
        lastProgressMs = performance.now();
        await pause(afterFailureMs);
      }
    }
    leader = null;
  }

  /** Applies further batches while they are worthwhile. */
  function help(): void {
    if (helpers.size >= atOnce - 1) return;
    const helper = (async () => {
      try {
        while (!closing.signal.aborted && (await look(passed.mark())).events > 0);
      } catch (err) {
        deps.log.warn({ err }, "events could not be applied");
      }
    })().finally(() => helpers.delete(helper));
    helpers.add(helper);
  }

  const pause = (ms: number) => sleep(ms, undefined, { signal: closing.signal }).catch(() => {});

  function wake(): void {
    if (closing.signal.aborted) return;
    awakeUntilMs = performance.now() + awakeMs;
    if (leader !== null) return;
    lastProgressMs = performance.now();
    leader = lead();
  }

  return {
    wake,
    sweep() {
      isSweepAsked = true;
      wake();
    },
    sinceProgressMs: () => (leader === null ? 0 : performance.now() - lastProgressMs),
    async close() {
      closing.abort();
      await Promise.all([leader, ...helpers]);
    },
  };
}

/** How long a number may be committed after a higher one was seen: longer than an append may take (main/runtime.ts). */
const lateCommitMs = 10_000;

/**
 * The number below which a poll need not read: every event up to it was tried, or is left to the relay. It trails
 * behind the highest number seen, since numbers are committed out of order. Without it a poll would pass the remains of
 * all events that were applied since the oldest open transaction of the server began.
 */
function createPassedMark() {
  let mark = 0;
  let next = 0;
  let highest = 0;
  let sinceMs = performance.now();
  return {
    note(seq: number): void {
      highest = Math.max(highest, seq);
    },
    mark(): number {
      const nowMs = performance.now();
      if (nowMs - sinceMs > lateCommitMs) {
        [mark, next, sinceMs] = [next, highest, nowMs];
      }
      return mark;
    },
  };
}
