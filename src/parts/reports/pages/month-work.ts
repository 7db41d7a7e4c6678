import type { Clock } from "../../../platform/clock.ts";
import type { Log } from "../../../platform/log.ts";
import type { TellProgress } from "../close/close-month.ts";

/** The page's words for work on a month. */
export type Doing = "preparing" | "closing";

/** Work on a month, which continues even if no request waits. */
export interface Work {
  doing: Doing;
  month: string;
  by: string;
  since: Date;
  /** Null before the first report. */
  progress: { report: string; done: number; of: number } | null;
}

/** Work that ended without success after its page had answered. */
export interface Failure {
  doing: Doing;
  by: string;
  at: Date;
  error: unknown;
}

/** One piece of work at a time in this process; the database's locks do the same across processes. */
export interface MonthWork {
  running(): Work | null;
  /** Failure of the last work on a month; null after a success, or where its page reported it. */
  failure(month: string): Failure | null;
  /**
   * Starts the work, and waits for a limited time. Rethrows a failure within it; a later one becomes `failure`. Returns
   * "busy" while other work is running.
   */
  begin(
    work: Pick<Work, "doing" | "month" | "by">,
    run: (tell: TellProgress) => Promise<void>,
  ): Promise<"done" | "goes on" | "busy">;
}

export function createMonthWork({ clock, log }: { clock: Clock; log: Log }, { waitMs }: { waitMs: number }): MonthWork {
  let current: Work | null = null;
  const failures = new Map<string, Failure>();
  return {
    running: () => current,
    failure: (month) => failures.get(month) ?? null,
    async begin({ doing, month, by }, run) {
      if (current !== null) return "busy";
      const work: Work = { doing, month, by, since: clock.now(), progress: null };
      current = work;
      failures.delete(month);
      let isAwaited = true;
      const ended = run((progress) => void (work.progress = progress)).then(
        () => "done" as const,
        (error: unknown) => {
          if (isAwaited) throw error;
          log.warn({ err: error, month, doing }, "a month was not prepared or closed");
          failures.set(month, { doing, by, at: clock.now(), error });
          return "done" as const;
        },
      );
      const over = ended.finally(() => (current = null));
      let late: NodeJS.Timeout | undefined;
      const patience = new Promise<"goes on">((resolve) => {
        late = setTimeout(() => {
          isAwaited = false;
          resolve("goes on");
        }, waitMs);
      });
      return Promise.race([over, patience]).finally(() => clearTimeout(late));
    },
  };
}
