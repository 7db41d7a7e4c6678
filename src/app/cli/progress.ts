import { Presets, SingleBar } from "cli-progress";

export interface Progress {
  update(done: number): void;
  stop(): void;
}

/** A bar on a terminal; elsewhere a plain line at every tenth of the work. */
export function createProgress(out: NodeJS.WriteStream, label: string, total: number): Progress {
  if (out.isTTY) {
    const bar = new SingleBar(
      {
        format: `${label} {bar} {value}/{total}  ETA {eta_formatted}`,
        stream: out,
        hideCursor: true,
      },
      Presets.shades_classic,
    );
    bar.start(total, 0);
    return { update: (done) => bar.update(done), stop: () => bar.stop() };
  }
  let shownTenths = 0;
  return {
    update(done) {
      const tenths = total === 0 ? 10 : Math.floor((done / total) * 10);
      if (tenths > shownTenths) out.write(`${label}: ${done} of ${total}\n`);
      shownTenths = Math.max(shownTenths, tenths);
    },
    stop() {},
  };
}
