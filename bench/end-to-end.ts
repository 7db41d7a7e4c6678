import type { Benchmark } from "./benchmark.ts";
import type { Mix } from "./load/protocol.ts";
import { type AppliedRound, appliedRound } from "./support/applied-round.ts";
import { meterDisk } from "./support/disk-use.ts";
import { describeCost } from "./support/format.ts";
import { leastDisturbed, whenQuiet } from "./support/quiet.ts";
import { sampleMemory } from "./support/resident-memory.ts";
import { median } from "./support/statistics.ts";
import { withSystem } from "./support/system.ts";

/** For the plain mix. */
const wantedPerSecond = 5_000;

/** (b) Events accepted and applied a second, from the first request until none waits. */
export const endToEnd: Benchmark = {
  name: "end-to-end",
  title: "Events accepted and applied a second, 64 connections, closed loop",
  async run(stand, options, say) {
    const rows = [];
    const targets = [];
    const mixes: readonly Mix[] = options.mix === null ? ["plain", "real"] : [options.mix];
    for (const mix of mixes) {
      for (const backend of stand.backends) {
        const { rounds, memory, disk } = await withSystem(
          stand,
          backend,
          { ...options, sends: mix },
          async (system) => {
            await appliedRound(system, Math.min(2, options.seconds));
            const stopSampling = sampleMemory({
              receiver: system.receiver.pid,
              worker: system.worker.pid,
            });
            const readDisk = await meterDisk(system.client);
            const measured: AppliedRound[] = [];
            for (let n = 1; n <= options.rounds; n++) {
              const round = await whenQuiet(options, () => appliedRound(system, options.seconds));
              const rate = Math.round(round.appliedPerSecond);
              say(`round ${n}: ${mix} mix, queue on ${backend}: ${rate}/s`);
              measured.push(round);
            }
            const events = measured.reduce((sum, { accepted }) => sum + accepted, 0);
            return { rounds: measured, memory: stopSampling(), disk: await readDisk(events) };
          },
        );
        const rates = rounds.map(({ appliedPerSecond }) => appliedPerSecond);
        const most = (name: string) => Math.round(Math.max(...(memory[name] ?? []).map(({ megabytes }) => megabytes)));
        const cheapest = leastDisturbed(rounds);
        const cost = describeCost(cheapest.cpu, cheapest.meteredPerSecond);
        rows.push({
          mix,
          queue: backend,
          "applied/s": Math.round(median(rates)),
          lowest: Math.round(Math.min(...rates)),
          highest: Math.round(Math.max(...rates)),
          "accepted/s": Math.round(median(rounds.map(({ acceptedPerSecond }) => acceptedPerSecond))),
          "receiver MB": most("receiver"),
          "worker MB": most("worker"),
          "CPU µs an event": cost.costs,
          "KB an event": (["inbox", "mirror", "rest", "wal"] as const)
            .map((what) => `${what} ${(disk[what] / 1_000).toFixed(1)}`)
            .join(", "),
          "these CPUs could do": cost.bound,
          elsewhere: (cheapest.cpu["elsewhere"] ?? 0).toFixed(2),
        });
        if (mix !== "plain") continue;
        targets.push({
          what: `accepted and applied, queue on ${backend}`,
          wanted: `≥ ${wantedPerSecond.toLocaleString("en")}/s`,
          measured: `${Math.round(median(rates)).toLocaleString("en")}/s`,
          reached: median(rates) >= wantedPerSecond,
        });
      }
    }
    const notes = [
      "nothing is pinned: the programs share the CPUs, as in a small deployment",
      "real mix: of 100 deliveries 10 repeats, 20 older states after newer ones, 8 declines of renewals, 2 ties, 2 thin objects, refunds, chargebacks; every delivery counts as one; the CPU time includes reading from the service",
      "after each round, what is stored was compared with what was answered 200",
    ];
    return { rows, targets, notes };
  },
};
