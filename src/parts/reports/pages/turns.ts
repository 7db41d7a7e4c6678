import type { Clock } from "../../../platform/clock.ts";

/** A report being made. */
export interface Turn {
  what: string;
  since: Date;
}

/** A few at a time; a later request waits for a while, and then gets a page that names the requests before it. */
export interface Turns {
  take<T>(what: string, work: () => Promise<T>): Promise<{ done: T } | { busy: readonly Turn[] }>;
}

export function createTurns(
  { clock }: { clock: Clock },
  { atOnce, waitMs }: { atOnce: number; waitMs: number },
): Turns {
  const taken = new Set<Turn>();
  let free = atOnce;
  const waiting: (() => void)[] = [];

  /** Resolves to false where no place became free in time. */
  const waitForTurn = (): Promise<boolean> =>
    new Promise((resolve) => {
      const called = () => {
        clearTimeout(late);
        resolve(true);
      };
      const late = setTimeout(() => {
        waiting.splice(waiting.indexOf(called), 1);
        resolve(false);
      }, waitMs);
      waiting.push(called);
    });

  return {
    async take(what, work) {
      if (free > 0) free -= 1;
      else if (!(await waitForTurn())) return { busy: [...taken] };
      const turn = { what, since: clock.now() };
      taken.add(turn);
      try {
        return { done: await work() };
      } finally {
        taken.delete(turn);
        // The place goes directly to the next waiting request, so that no newcomer takes it.
        const next = waiting.shift();
        if (next === undefined) free += 1;
        else next();
      }
    },
  };
}
