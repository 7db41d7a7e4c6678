import type { Benchmark } from "./benchmark.ts";
import { type CpuUse, meterCpu } from "./support/cpu-meter.ts";
import { describeCost } from "./support/format.ts";
import { leastDisturbed, whenQuiet } from "./support/quiet.ts";
import { sampleMemory } from "./support/resident-memory.ts";
import { median } from "./support/statistics.ts";
import { type System, untilApplied, withSystem } from "./support/system.ts";

const wantedPerSecond = 5_000;

interface Round {
  events: number;
  acceptedPerSecond: number;
  appliedPerSecond: number;
  cpu: CpuUse;
}

/** (b) Events accepted and applied a second, from the first request until none waits. */
export const endToEnd: Benchmark = {
  name: "end-to-end",
  title: "Events accepted and applied a second, 64 connections, closed loop",
  async run(stand, options, say) {
    const rows = [];
    const targets = [];
    for (const backend of stand.backends) {
      const { rounds, memory } = await withSystem(stand, backend, options, async (system) => {
        await oneRound(system, Math.min(2, options.seconds));
        const stopSampling = sampleMemory({
          receiver: system.receiver.pid,
          worker: system.worker.pid,
        });
        const measured: Round[] = [];
        for (let n = 1; n <= options.rounds; n++) {
          const round = await whenQuiet(options, () => oneRound(system, options.seconds));
          say(`round ${n}: queue on ${backend}: ${Math.round(round.appliedPerSecond)}/s`);
          measured.push(round);
        }
        return { rounds: measured, memory: stopSampling() };
      });
      const rates = rounds.map(({ appliedPerSecond }) => appliedPerSecond);
      const most = (name: string) =>
        Math.round(Math.max(...(memory[name] ?? []).map(({ megabytes }) => megabytes)));
      const cheapest = leastDisturbed(rounds);
      const cost = describeCost(cheapest.cpu, cheapest.appliedPerSecond);
      rows.push({
        queue: backend,
        "applied/s": Math.round(median(rates)),
        lowest: Math.round(Math.min(...rates)),
        highest: Math.round(Math.max(...rates)),
        "accepted/s": Math.round(median(rounds.map(({ acceptedPerSecond }) => acceptedPerSecond))),
        "receiver MB": most("receiver"),
        "worker MB": most("worker"),
        "CPU µs an event": cost.costs,
        "these CPUs could do": cost.bound,
        elsewhere: (cheapest.cpu["elsewhere"] ?? 0).toFixed(2),
      });
      targets.push({
        what: `accepted and applied, queue on ${backend}`,
        wanted: `≥ ${wantedPerSecond.toLocaleString("en")}/s`,
        measured: `${Math.round(median(rates)).toLocaleString("en")}/s`,
        reached: median(rates) >= wantedPerSecond,
      });
    }
    const notes = ["nothing is pinned: four programs share the CPUs, as in a small deployment"];
    return { rows, targets, notes };
  },
};

async function oneRound(
  { generator, port, client, pids }: System,
  seconds: number,
): Promise<Round> {
  let stopMeter: () => CpuUse = () => ({});
  const maxEvents = Math.ceil(seconds * 20_000);
  const report = await generator.run({ port, plan: { kind: "closed", seconds, maxEvents } }, () => {
    stopMeter = meterCpu(pids);
  });
  await untilApplied(client);
  const totalSeconds = (Date.now() - report.startedAtMs) / 1_000;
  return {
    events: report.accepted,
    acceptedPerSecond: report.accepted / report.seconds,
    appliedPerSecond: report.accepted / totalSeconds,
    cpu: stopMeter(),
  };
}
