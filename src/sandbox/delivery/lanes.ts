import type { Lane, LaneDeps, Sending } from "./lane.ts";
import { createLane } from "./lane.ts";

/** A lane for each endpoint: one that answers slowly holds no other up. */
export interface Lanes {
  /** In all lanes: waiting, held back, delayed or under way. */
  readonly pending: number;
  push(endpointId: string, sending: Sending): void;
  /** Takes out what waits for an endpoint, but for what is held back or delayed. */
  takeReady(endpointId: string): Sending[];
  /** Resolves when nothing is pending. */
  quiet(): Promise<void>;
  close(): void;
}

export interface LanesDeps extends Pick<LaneDeps, "send"> {
  concurrency: (endpointId: string) => number;
}

export function createLanes({ send, concurrency }: LanesDeps): Lanes {
  const lanes = new Map<string, Lane>();
  let waiters: (() => void)[] = [];

  function pending(): number {
    let sum = 0;
    for (const lane of lanes.values()) sum += lane.pending;
    return sum;
  }

  function onQuiet(): void {
    if (pending() > 0) return;
    const released = waiters;
    waiters = [];
    for (const resolve of released) resolve();
  }

  return {
    get pending() {
      return pending();
    },
    push(endpointId, sending) {
      let lane = lanes.get(endpointId);
      if (lane === undefined) {
        lane = createLane({ send, concurrency: () => concurrency(endpointId), onQuiet });
        lanes.set(endpointId, lane);
      }
      lane.push(sending);
    },
    takeReady: (endpointId) => lanes.get(endpointId)?.takeReady() ?? [],
    quiet: () =>
      pending() === 0
        ? Promise.resolve()
        : new Promise((resolve) => {
            waiters.push(resolve);
          }),
    close() {
      for (const lane of lanes.values()) lane.close();
      lanes.clear();
      onQuiet();
    },
  };
}
