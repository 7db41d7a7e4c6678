import { processMetrics } from "../src/app/metrics/process-metrics.ts";
import { createLog } from "../src/platform/log.ts";
import { createMetrics } from "../src/platform/metrics/registry.ts";
import type { Benchmark } from "./benchmark.ts";
import { cpuMicroseconds, shareOfVerifying, verified, verify } from "./support/cpu-of-an-event.ts";

/**
 * The cost of metrics per event, in CPU time of this process: the receiver observes each answer, the worker each lag.
 * All other values are read from existing counters, or at a scrape. Compared with the least cost of an event, its
 * verification and parsing. Needs no database.
 */
export const metrics: Benchmark = {
  name: "metrics",
  title: "CPU time of metrics for one event",
  isOnlyByName: true,
  async run(_stand, { rounds }) {
    const made = createMetrics({ log: createLog({ level: "silent", name: "bench" }) });
    const durations = made.histogram(processMetrics.requestDuration);
    const lags = made.histogram(processMetrics.applyLag);
    const answered = (): void => durations.observe(0.004, "POST", "/webhooks", "200");
    const costs = new Map([
      [verified, cpuMicroseconds(rounds, 10_000, verify)],
      ["receiver: an answer observed", cpuMicroseconds(rounds, 100_000, answered)],
      ["worker: a lag observed", cpuMicroseconds(rounds, 100_000, () => lags.observe(0.02))],
    ]);
    return { rows: shareOfVerifying(costs), targets: [], notes: ["CPU time of one process"] };
  },
};
