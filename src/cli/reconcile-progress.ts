import { Presets, SingleBar } from "cli-progress";
import type { Clock } from "../platform/clock.ts";
import type { WalkProgress } from "../reconcile/walk-all.ts";

export interface ReconcileProgress {
  update(progress: WalkProgress): void;
  stop(): void;
}

const format =
  "{slices} slices {bar} {value}/{total} rows  {pages} pages  {rate} rows/s  {doubtful} doubtful  ETA {eta_formatted}";
const lineEveryMs = 10_000;

/** A bar where a terminal is; elsewhere a plain line now and then. The total is what the mirror holds: it may grow. */
export function createReconcileProgress(out: NodeJS.WriteStream, clock: Clock): ReconcileProgress {
  const startedAt = clock.now().getTime();
  const rateOf = ({ rows }: WalkProgress): number =>
    Math.round(rows / Math.max(0.001, (clock.now().getTime() - startedAt) / 1_000));
  if (!out.isTTY) {
    let nextLineAt = startedAt + lineEveryMs;
    return {
      update(progress) {
        if (clock.now().getTime() < nextLineAt) return;
        nextLineAt += lineEveryMs;
        const { slicesDone, slices, pages, rows, doubtful } = progress;
        out.write(
          `reconcile: ${slicesDone} of ${slices} slices, ${pages} pages, ${rows} rows, ${rateOf(progress)} rows/s, ${doubtful} doubtful\n`,
        );
      },
      stop() {},
    };
  }
  const bar = new SingleBar({ format, stream: out, hideCursor: true }, Presets.shades_classic);
  bar.start(1, 0, { slices: "0/?", pages: 0, rate: 0, doubtful: 0 });
  return {
    update(progress) {
      const { slices, slicesDone, rows, expectedRows, pages, doubtful } = progress;
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
