import type { Clock } from "../../../platform/clock.ts";

/** What is being made. */
export interface Turn {
  what: string;
  since: Date;
}

/** A few at once; who comes later waits for a while, and then is told who is before them. */
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

  /** Resolves to false where nobody has finished in time. */
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
        // Whoever waits is given the place itself, so that nobody who comes at this moment takes it.
        const next = waiting.shift();
        if (next === undefined) free += 1;
        else next();
      }
    },
  };
}
