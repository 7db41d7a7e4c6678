import type { Clock } from "../../platform/clock.ts";
import type { Pace } from "./pace.ts";

/** Single objects that a webhook asked for go before the pages of a walk. */
export type Lane = "fetch" | "walk";

const lanes: readonly Lane[] = ["fetch", "walk"];

/** Waits; rejects when the signal aborts. Injected, so that tests need not wait. */
export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>;

export interface LaneGate {
  /**
   * Waits for a turn: a free place, and the pace. Whoever is let in must call the function it gets.
   * Rejects with the signal's reason when that aborts first.
   */
  enter(lane: Lane, signal: AbortSignal): Promise<() => void>;
}

type Waiting = { admit: () => void };

/**
 * Lets at most `places` requests run at once and starts them no faster than the pace allows. A place
 * goes to the longest waiting fetch; to a walk only when no fetch waits.
 */
export function createLaneGate(
  { clock, pace, sleep, closing }: { clock: Clock; pace: Pace; sleep: Sleep; closing: AbortSignal },
  places: number,
): LaneGate {
  const waiting: Record<Lane, Set<Waiting>> = { fetch: new Set(), walk: new Set() };
  let running = 0;
  let asleep = false;

  function next(): [Set<Waiting>, Waiting] | null {
    for (const lane of lanes) {
      const [first] = waiting[lane];
      if (first !== undefined) return [waiting[lane], first];
    }
    return null;
  }

  function admitWhoMayStart(): void {
    for (let first = next(); first !== null && running < places; first = next()) {
      const waitMs = pace.waitMs(clock.now().getTime());
      if (waitMs > 0) {
        wakeAfter(waitMs);
        return;
      }
      const [queue, waiter] = first;
      queue.delete(waiter);
      running += 1;
      pace.started(clock.now().getTime());
      waiter.admit();
    }
  }

  function wakeAfter(waitMs: number): void {
    if (asleep) return;
    asleep = true;
    const wake = (): void => {
      asleep = false;
      admitWhoMayStart();
    };
    // Closing rejects the sleep; those who wait then have signals of their own that end with it.
    sleep(waitMs, closing).then(wake, () => undefined);
  }

  function leave(): void {
    running -= 1;
    admitWhoMayStart();
  }

  return {
    enter(lane, signal) {
      return new Promise((resolve, reject) => {
        const abandon = (): void => {
          waiting[lane].delete(waiter);
          reject(signal.reason as Error);
        };
        let left = false;
        const waiter: Waiting = {
          admit: () => {
            signal.removeEventListener("abort", abandon);
            resolve(() => {
              if (!left) leave();
              left = true;
            });
          },
        };
        if (signal.aborted) {
          reject(signal.reason as Error);
          return;
        }
        signal.addEventListener("abort", abandon, { once: true });
        waiting[lane].add(waiter);
        admitWhoMayStart();
      });
    },
  };
}
