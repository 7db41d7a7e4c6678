import type { Benchmark } from "./benchmark.ts";
import { meterCpu } from "./support/cpu-meter.ts";
import { whenQuiet } from "./support/quiet.ts";
import { type Spread, median } from "./support/statistics.ts";
import { untilApplied, withSystem } from "./support/system.ts";

const perSecond = 1_000;
const wantedP99Ms = 20;

/** (c) How long a sender waits for its 2xx while a worker applies the events. */
export const ackLatency: Benchmark = {
  name: "ack-latency",
  title: `Time to the 2xx at ${perSecond} events/s, open loop`,
  async run(stand, options, say) {
    const rows = [];
    const targets = [];
    for (const backend of stand.backends) {
      const reports = await withSystem(stand, backend, options, async ({ generator, port, client, pids }) => {
        const open = (seconds: number) =>
          generator.run({ port, plan: { kind: "open", seconds, perSecond, reportAcks: false } });
        await open(Math.min(2, options.seconds));
        const measured = [];
        for (let n = 1; n <= options.rounds; n++) {
          const { report } = await whenQuiet(options, async () => {
            const stopMeter = meterCpu(pids);
            const measuredNow = await open(options.seconds);
            await untilApplied(client);
            return { report: measuredNow, cpu: stopMeter() };
          });
          say(`round ${n}: queue on ${backend}: p99 ${report.latencyMs.p99.toFixed(1)} ms`);
          measured.push(report);
        }
        return measured;
      });
      const of = (pick: (spread: Spread) => number) => median(reports.map(({ latencyMs }) => pick(latencyMs)));
      rows.push({
        queue: backend,
        "events/s": Math.round(median(reports.map((each) => each.accepted / each.seconds))),
        "p50 ms": of(({ p50 }) => p50).toFixed(2),
        "p99 ms": of(({ p99 }) => p99).toFixed(2),
        "max ms": Math.max(...reports.map(({ latencyMs }) => latencyMs.max)).toFixed(1),
        "of it generator p50": median(reports.map((each) => each.latenessMs.p50)).toFixed(2),
        "generator p99": median(reports.map((each) => each.latenessMs.p99)).toFixed(2),
      });
      targets.push({
        what: `p99 of the 2xx at ${perSecond} events/s, queue on ${backend}`,
        wanted: `< ${wantedP99Ms} ms`,
        measured: `${of(({ p99 }) => p99).toFixed(1)} ms`,
        reached: of(({ p99 }) => p99) < wantedP99Ms,
      });
    }
    const notes = [
      "requests are due at random times (Poisson); latency counts from when one was due, also where it had to wait",
      "max is the largest of all rounds; p50 and p99 are the medians of the rounds",
    ];
    return { rows, targets, notes };
  },
};
