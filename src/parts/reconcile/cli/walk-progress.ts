import { Presets, SingleBar } from "cli-progress";
import type { Clock } from "../../../platform/clock.ts";
import { counted } from "../../../platform/readable-text.ts";
import type { WalkProgress } from "../walk/walk-all.ts";

export interface ReconcileProgress {
  update(progress: WalkProgress): void;
  stop(): void;
}

export interface ProgressOptions {
  clock: Clock;
  /** IANA name: the zone in which the end of a wait is printed. */
  timeZone: string;
  /** True: prints only that the run waits. */
  isQuiet: boolean;
}

const format =
  "{slices} slices {bar} {value}/{total} rows  {pages} pages  {rate} rows/s  {doubtful} to recheck  ETA {eta_formatted}";
const lineEveryMs = 10_000;
/** A wait is announced only if it is at least this long, and again only if it becomes longer by at least this. */
const minAnnouncedWaitMs = 3_000;

/**
 * A bar on a terminal; elsewhere a plain line now and then. The total is the number of rows in the mirror, so it may
 * grow. A wait is announced at once, with its end and how to shorten it.
 */
export function createReconcileProgress(out: NodeJS.WriteStream, options: ProgressOptions): ReconcileProgress {
  const { clock, isQuiet } = options;
  const wait = createWaitNotice(options);
  if (isQuiet || !out.isTTY) {
    const line = isQuiet ? () => null : createLines(clock);
    return {
      update(progress) {
        for (const text of [wait(progress), line(progress)]) {
          if (text !== null) out.write(`reconcile: ${text}\n`);
        }
      },
      stop() {},
    };
  }
  const rateOf = createRate(clock);
  const bar = new SingleBar({ format, stream: out, hideCursor: true }, Presets.shades_classic);
  bar.start(1, 0, { slices: "0/?", pages: 0, rate: 0, doubtful: 0 });
  return {
    update(progress) {
      const { slices, slicesDone, rows, expectedRows, pages, doubtful } = progress;
      const notice = wait(progress);
      // Overwrites the bar, which is drawn again on the next line.
      if (notice !== null) out.write(`\r\u001b[K${notice}\n`);
      bar.setTotal(Math.max(expectedRows, rows));
      bar.update(rows, {
        slices: `${slicesDone}/${slices}`,
        pages,
        rate: rateOf(progress),
        doubtful,
      });
    },
    stop: () => bar.stop(),
  };
}

type TextOf = (progress: WalkProgress) => string | null;

function createLines(clock: Clock): TextOf {
  const rateOf = createRate(clock);
  let nextLineAt = clock.now().getTime() + lineEveryMs;
  let told = "";
  return (progress) => {
    const now = clock.now().getTime();
    const { slicesDone, slices, pages, rows, doubtful } = progress;
    const walked = `${slicesDone} of ${counted(slices, "slice")}, ${counted(pages, "page")}, ${counted(rows, "row")}`;
    const state = `${walked}, ${doubtful}`;
    // The rate falls while nothing moves, which is no news.
    if (now < nextLineAt || state === told) return null;
    nextLineAt = now + lineEveryMs;
    told = state;
    return `${walked}, ${rateOf(progress)} rows/s, ${doubtful} to recheck`;
  };
}

function createWaitNotice({ clock, timeZone }: ProgressOptions): TextOf {
  let announcedUntil = 0;
  return ({ doubtful, waitMs, waitReason }) => {
    const until = clock.now().getTime() + waitMs;
    if (waitMs === 0 || until < announcedUntil + minAnnouncedWaitMs) return null;
    announcedUntil = until;
    const time = new Intl.DateTimeFormat("sv-SE", { timeZone, timeStyle: "medium" }).format(until);
    if (waitReason !== null) {
      return `waits until ${time} (${timeZone}) for the service: ${waitReason}. Ctrl-C ends it, and the next run resumes here.`;
    }
    const objects = counted(doubtful, "object that differs", "objects that differ");
    return (
      `waits until ${time} (${timeZone}) for ${objects}: an event may be on its way, so each is rechecked after the grace. ` +
      "A lower RECONCILE_GRACE_SECONDS shortens the wait. Ctrl-C ends it, and the next run resumes here."
    );
  };
}

function createRate(clock: Clock): (progress: WalkProgress) => number {
  const startedAt = clock.now().getTime();
  return ({ rows }) => Math.round(rows / Math.max(0.001, (clock.now().getTime() - startedAt) / 1_000));
}
