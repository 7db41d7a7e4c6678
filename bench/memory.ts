import type { Benchmark } from "./benchmark.ts";
import { type MemorySample, sampleMemory } from "./support/resident-memory.ts";
import { slope } from "./support/statistics.ts";
import { untilApplied, withSystem } from "./support/system.ts";

const perSecond = 1_000;
const wantedMegabytes = 200;
/** A heap grows until it is collected: over a shorter time than this, growth is meaningless. */
const minGrowthMinutes = 5;
const wantedGrowthPerMinute = 1;

/** (d) Memory of receiver and worker under steady load. */
export const memory: Benchmark = {
  name: "memory",
  title: `Resident memory at ${perSecond} events/s`,
  async run(stand, options, say) {
    const seconds = options.minutes === null ? Math.max(20, options.seconds) : options.minutes * 60;
    const samples = await withSystem(stand, "postgres", options, async (system) => {
      const { generator, port, client, receiver, worker } = system;
      const stop = sampleMemory({ receiver: receiver.pid, worker: worker.pid });
      say(`${seconds} s …`);
      await generator.run({ port, plan: { kind: "open", seconds, perSecond, reportAcks: false } });
      await untilApplied(client);
      return stop();
    });
    const rows = [];
    const targets = [];
    for (const [name, all] of Object.entries(samples)) {
      const most = Math.max(...all.map(({ megabytes }) => megabytes));
      const growth = growthPerMinute(all);
      rows.push({
        process: name,
        "idle MB": Math.round(all[0]?.megabytes ?? 0),
        "MB after a quarter": Math.round(all[Math.floor(all.length / 4)]?.megabytes ?? 0),
        "MB at the end": Math.round(all.at(-1)?.megabytes ?? 0),
        "most MB": Math.round(most),
        "growth MB/min, second half": growth.toFixed(2),
      });
      targets.push({
        what: `${name} under load`,
        wanted: `< ${wantedMegabytes} MB`,
        measured: `${Math.round(most)} MB`,
        reached: most < wantedMegabytes,
      });
      if (seconds < minGrowthMinutes * 60) continue;
      targets.push({
        what: `${name} over ${seconds / 60} minutes`,
        wanted: `flat (< ${wantedGrowthPerMinute} MB/min)`,
        measured: `${growth.toFixed(2)} MB/min`,
        reached: growth < wantedGrowthPerMinute,
      });
    }
    return { rows, targets, notes: [`${seconds} s, queue on PostgreSQL; sampled every second`] };
  },
};

function growthPerMinute(samples: readonly MemorySample[]): number {
  const half = samples.slice(Math.floor(samples.length / 2));
  return slope(half.map(({ seconds, megabytes }) => ({ x: seconds / 60, y: megabytes })));
}
