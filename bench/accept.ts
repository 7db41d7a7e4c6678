import type { Benchmark, BenchOptions } from "./benchmark.ts";
import { type CpuUse, meterCpu } from "./support/cpu-meter.ts";
import { describeCpu } from "./support/format.ts";
import { type LoadGenerator, startLoadGenerator } from "./support/load-generator.ts";
import { pinningNote, placement } from "./support/pinning.ts";
import { whenQuiet } from "./support/quiet.ts";
import type { QueueBackend, Stand } from "./support/stand.ts";
import { median } from "./support/statistics.ts";
import { type RunningServer, startOtherServer, startReceiver } from "./support/tallyhook.ts";

interface Candidate {
  name: string;
  server: RunningServer;
  /** Other processes that work for this server. */
  pids: Readonly<Record<string, number>>;
  rates: number[];
  p99s: number[];
  /** CPU time of the server for one event, in µs. Varies less than the rate when the machine is busy. */
  costs: number[];
  cpu: CpuUse;
}

const reference = "Koa + raw-body + HMAC";

/** (a) How many deliveries a second are acknowledged durably, beside servers that store nothing. */
export const accept: Benchmark = {
  name: "accept",
  title: "Deliveries acknowledged a second, 64 connections, closed loop",
  async run(stand, options, say) {
    const placed = { directory: stand.directory, cpus: placement.server, profile: options.profile };
    const generator = startLoadGenerator({ ...placed, cpus: placement.others });
    const others = await Promise.all(
      otherServers.map(async ({ label, ...server }) =>
        candidate(label, await startOtherServer(placed, server)),
      ),
    );
    try {
      const durable = await withReceivers(stand, placed, (receivers) =>
        alternate([...others, ...receivers], generator, options, say),
      );
      return report(durable);
    } finally {
      await generator.stop();
      for (const { server } of others) await server.process.stop();
    }
  },
};

const otherServers = [
  {
    label: "node:http + HMAC",
    name: "bare-node",
    source: new URL("servers/bare-node.ts", import.meta.url),
  },
  { label: reference, name: "bare-koa", source: new URL("servers/bare-koa.ts", import.meta.url) },
  {
    label: "the same + JSON.parse",
    name: "bare-koa-parse",
    source: new URL("servers/bare-koa.ts", import.meta.url),
    args: ["parse"],
  },
  {
    label: "receiver, nothing stored",
    name: "unstored",
    source: new URL("servers/unstored.ts", import.meta.url),
  },
];

const candidate = (
  name: string,
  server: RunningServer,
  pids: Readonly<Record<string, number>> = {},
): Candidate => ({ name, server, pids, rates: [], p99s: [], costs: [], cpu: {} });

/** One receiver for each backend, with its own database. All run while the work is done. */
async function withReceivers<T>(
  stand: Stand,
  placed: Parameters<typeof startReceiver>[0],
  work: (receivers: Candidate[]) => Promise<T>,
): Promise<T> {
  const nest = async (
    [backend, ...rest]: readonly QueueBackend[],
    made: Candidate[],
  ): Promise<T> => {
    if (backend === undefined) return work(made);
    return stand.withDatabase(backend, placement.others, async (place) => {
      const server = await startReceiver({ ...placed, name: `receiver-${backend}` }, place);
      try {
        const name = `receiver, durable, queue on ${backend}`;
        return await nest(rest, [...made, candidate(name, server, place.pids)]);
      } finally {
        await server.process.stop();
      }
    });
  };
  return nest(stand.backends, []);
}

/** Measures the candidates in turn, round after round, so that a slow minute of the machine affects all of them. */
async function alternate(
  candidates: Candidate[],
  generator: LoadGenerator,
  { seconds, rounds, patient }: BenchOptions,
  say: (line: string) => void,
): Promise<Candidate[]> {
  const load = (each: Candidate, forSeconds: number, onStart?: () => void) =>
    generator.run(
      {
        port: each.server.port,
        plan: { kind: "closed", seconds: forSeconds, maxEvents: Math.ceil(forSeconds * 20_000) },
      },
      onStart,
    );
  for (const each of candidates) await load(each, Math.min(2, seconds));
  for (let round = 1; round <= rounds; round++) {
    for (const each of candidates) {
      const { result, cpu } = await whenQuiet({ patient }, async () => {
        let stopMeter: () => CpuUse = () => ({});
        const programs = { server: each.server.process.pid, generator: generator.process.pid };
        const measured = await load(each, seconds, () => {
          stopMeter = meterCpu({ ...programs, ...each.pids });
        });
        return { result: measured, cpu: stopMeter() };
      });
      const perSecond = result.accepted / result.seconds;
      each.cpu = cpu;
      each.rates.push(perSecond);
      each.costs.push(((cpu["server"] ?? Number.NaN) * 1e6) / perSecond);
      each.p99s.push(result.latencyMs.p99);
      say(`round ${round}: ${each.name}: ${Math.round(perSecond)}/s`);
    }
  }
  return candidates;
}

function report(candidates: Candidate[]) {
  const base = candidates.find(({ name }) => name === reference)?.rates ?? [];
  const ratio = ({ rates }: Candidate) =>
    median(rates.map((rate, n) => rate / (base[n] ?? Number.NaN)));
  const rows = candidates.map((each) => ({
    server: each.name,
    "per second": Math.round(median(each.rates)),
    lowest: Math.round(Math.min(...each.rates)),
    highest: Math.round(Math.max(...each.rates)),
    "to bare Koa": ratio(each).toFixed(2),
    "CPU µs": Math.round(median(each.costs)),
    "p99 ms": median(each.p99s).toFixed(1),
    "CPUs in use": describeCpu(each.cpu),
  }));
  const targets = candidates
    .filter(({ name }) => name.startsWith("receiver, durable"))
    .map((each) => ({
      what: `${each.name}, to bare Koa`,
      wanted: "≥ 1.00",
      measured: ratio(each).toFixed(2),
      reached: ratio(each) >= 1,
    }));
  const notes = [pinningNote, "the ratio is the median of the rounds' ratios"];
  return { rows, targets, notes };
}
