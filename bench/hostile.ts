import type { Benchmark } from "./benchmark.ts";
import type { Attack } from "./load/attacks.ts";
import { compiled } from "./support/compile.ts";
import { placement } from "./support/pinning.ts";
import { nextMessage, startProcess } from "./support/processes.ts";
import { median } from "./support/statistics.ts";
import { untilApplied, withSystem } from "./support/system.ts";

const perSecond = 100;
const wantedRatio = 2;
const attacks: readonly (readonly [Attack, number])[] = [
  ["silent", 1_100],
  ["forging", 1_100],
  ["unread", 100],
];

/** How attackers affect honest senders. Quiet and attacked rounds alternate. */
export const hostile: Benchmark = {
  name: "hostile",
  title: `Time to the 2xx at ${perSecond} events/s beside connections that do harm`,
  async run(stand, options, say) {
    const rows = [];
    const targets = [];
    const backend = "postgres";
    for (const [kind, connections] of attacks) {
      const p99s = await withSystem(stand, backend, options, async ({ generator, port, client }) => {
        const honest = async (seconds: number): Promise<number> => {
          const plan = { kind: "open" as const, seconds, perSecond, reportAcks: false };
          const report = await generator.run({ port, plan });
          await untilApplied(client);
          return report.latencyMs.p99;
        };
        await honest(Math.min(2, options.seconds));
        const measured = { quiet: [] as number[], attacked: [] as number[] };
        for (let n = 1; n <= options.rounds; n++) {
          const quiet = await honest(options.seconds);
          const attacker = startProcess({
            name: `attack-${kind}`,
            file: compiled(new URL("./load/attack.ts", import.meta.url)),
            args: [kind, String(port), String(connections)],
            cpus: placement.all,
            directory: stand.directory,
            ipc: true,
          });
          try {
            await nextMessage<"ready">(attacker);
            const attacked = await honest(options.seconds);
            measured.quiet.push(quiet);
            measured.attacked.push(attacked);
            say(`round ${n}: ${kind}: p99 ${attacked.toFixed(1)} ms, ${quiet.toFixed(1)} without`);
          } finally {
            await attacker.stop();
          }
        }
        return measured;
      });
      const [quiet, attacked] = [median(p99s.quiet), median(p99s.attacked)];
      rows.push({
        attack: `${connections} ${kind}`,
        "p99 ms": attacked.toFixed(1),
        "without ms": quiet.toFixed(1),
        ratio: (attacked / quiet).toFixed(2),
      });
      targets.push({
        what: `p99 of the 2xx beside ${connections} ${kind} connections, to that without`,
        wanted: `<= ${wantedRatio}`,
        measured: (attacked / quiet).toFixed(2),
        reached: attacked / quiet <= wantedRatio,
      });
    }
    const notes = ["the attackers share the CPUs with the system, so part of what is measured is their own work"];
    return { rows, targets, notes };
  },
};
