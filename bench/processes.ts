import pg from "pg";
import type { Benchmark, BenchOptions } from "./benchmark.ts";
import { type CpuUse, meterCpu } from "./support/cpu-meter.ts";
import { type Cell, describeCost } from "./support/format.ts";
import { type LoadGenerator, type SentStream, newStream, startLoadGenerator } from "./support/load-generator.ts";
import { placement } from "./support/pinning.ts";
import type { QueueBackend, Stand } from "./support/stand.ts";
import { median } from "./support/statistics.ts";
import { untilApplied } from "./support/system.ts";
import { startOtherServer, startReceiver, startWorker } from "./support/tallyhook.ts";

/** Receivers and workers of the two deployments. */
const deployments = [1, 4] as const;
const connections = 64;

interface Round {
  /** Events of different objects. */
  distinct: Measured;
  /** Events of one order. */
  hot: Measured;
}

interface Measured {
  perSecond: number;
  cpu: CpuUse;
  /** CPU of all programs but the load generators, in microseconds an event. */
  cost: number;
}

/** The cost of an event when several receivers and workers share one database. */
export const processes: Benchmark = {
  name: "processes",
  title: "4 receivers and 4 workers beside 1 and 1, 64 connections in all, closed loop",
  async run(stand, options, say) {
    const rows = [];
    const targets = [];
    const floorRows = await measureFloors(stand, options, say);
    for (const backend of stand.backends) {
      const measured = new Map<number, Round[]>(deployments.map((count) => [count, []]));
      for (let n = 1; n <= options.rounds; n++) {
        for (const count of deployments) {
          const round = await oneRound(stand, backend, count, options);
          measured.get(count)?.push(round);
          const what = `${count} + ${count}, queue on ${backend}`;
          for (const [kind, { perSecond, cost }] of Object.entries(round)) {
            say(`round ${n}: ${what}, ${kind}: ${Math.round(perSecond)}/s, ${Math.round(cost)} µs`);
          }
        }
      }
      const [one = [], four = []] = [...measured.values()];
      const ratio = (of: (round: Measured) => number) =>
        median(four.map((round, n) => of(round.distinct) / of((one[n] ?? round).distinct)));
      for (const [count, rounds] of measured) {
        for (const kind of ["distinct", "hot"] as const) {
          const own = rounds.map((round) => round[kind]);
          const last = own.at(-1);
          rows.push({
            queue: backend,
            processes: `${count} + ${count}`,
            objects: kind === "hot" ? "one order" : "many",
            "events/s": Math.round(median(own.map(({ perSecond }) => perSecond))),
            "CPU µs an event": Math.round(median(own.map(({ cost }) => cost))),
            "of which": last === undefined ? "" : describeCost(last.cpu, last.perSecond).costs,
          });
        }
        const hot = median(rounds.map((round) => round.hot.perSecond / round.distinct.perSecond));
        targets.push({
          what: `applied a second of one order, to many, ${count} + ${count}, queue on ${backend}`,
          wanted: "≥ 0.80",
          measured: hot.toFixed(2),
          reached: hot >= 0.8,
        });
      }
      const cost = ratio((round) => round.cost);
      const rate = ratio((round) => round.perSecond);
      targets.push(
        {
          what: `CPU an event, 4 + 4 to 1 + 1, queue on ${backend}`,
          wanted: "≤ 1.25",
          measured: cost.toFixed(2),
          reached: cost <= 1.25,
        },
        {
          what: `applied a second, 4 + 4 to 1 + 1, queue on ${backend}`,
          wanted: "≥ 0.85",
          measured: rate.toFixed(2),
          reached: rate >= 0.85,
        },
      );
    }
    return {
      rows: [...floorRows, ...rows],
      targets,
      notes: [
        "all programs share the CPUs",
        "the floor stores an event with Koa and one INSERT and applies nothing: what the same number of processes cost by themselves",
      ],
    };
  },
};

/** The number of receivers, and of receivers and workers. */
const floors = [1, 4, 8] as const;

/** The cost of a durable receiver without any of our code (bench/servers/floor.ts), alone and with others. */
async function measureFloors(
  stand: Stand,
  options: BenchOptions,
  say: (line: string) => void,
): Promise<Record<string, Cell>[]> {
  const rows = [];
  for (const count of floors) {
    const rounds: Measured[] = [];
    for (let n = 1; n <= options.rounds; n++) {
      const round = await floorRound(stand, count, options);
      rounds.push(round);
      say(`round ${n}: floor in ${count}: ${Math.round(round.perSecond)}/s, ${Math.round(round.cost)} µs`);
    }
    const last = rounds.at(-1);
    rows.push({
      queue: "–",
      processes: `floor in ${count}`,
      objects: "many",
      "events/s": Math.round(median(rounds.map(({ perSecond }) => perSecond))),
      "CPU µs an event": Math.round(median(rounds.map(({ cost }) => cost))),
      "of which": last === undefined ? "" : describeCost(last.cpu, last.perSecond).costs,
    });
  }
  return rows;
}

const floorRound = (stand: Stand, count: number, { seconds, profile }: BenchOptions) =>
  stand.withEmptyDatabase(placement.all, async (DATABASE_URL): Promise<Measured> => {
    const closers: (() => Promise<void>)[] = [];
    const { directory, postgres } = stand;
    const cpus = placement.all;
    try {
      const pids: Record<string, number> = { postgres: postgres.pid };
      const generators: Target[] = [];
      for (let n = 1; n <= count; n++) {
        const { process: server, port } = await startOtherServer(
          { directory, cpus, profile },
          { name: `floor${n}`, source: floorSource, env: { DATABASE_URL } },
        );
        closers.push(() => server.stop());
        const generator = startLoadGenerator({
          directory,
          cpus,
          connections: connections / count,
        });
        closers.push(() => generator.stop());
        Object.assign(pids, {
          [`floor${n}`]: server.pid,
          [`generator${n}`]: generator.process.pid,
        });
        generators.push({ generator, port, hot: newStream("hot") });
      }
      await load(generators, "distinct", 4 * count);
      let stopMeter: () => CpuUse = () => ({});
      const { accepted, startedAtMs } = await load(generators, "distinct", seconds, () => {
        stopMeter = meterCpu(pids);
      });
      return measured(accepted / ((Date.now() - startedAtMs) / 1_000), stopMeter());
    } finally {
      for (const close of closers.reverse()) await close();
    }
  });

const floorSource = new URL("servers/floor.ts", import.meta.url);

function measured(perSecond: number, cpu: CpuUse): Measured {
  const spent = Object.entries(cpu)
    .filter(([name]) => !/^(?:generator|elsewhere|runner)/.test(name))
    .reduce((sum, [, used]) => sum + used, 0);
  return { perSecond, cpu: summed(cpu), cost: (spent / perSecond) * 1e6 };
}

const oneRound = (stand: Stand, backend: QueueBackend, count: number, options: BenchOptions) =>
  stand.withDatabase(backend, placement.all, async (place) => {
    const closers: (() => Promise<void>)[] = [];
    const cpus = placement.all;
    try {
      const { directory } = stand;
      const { profile } = options;
      const numbers = Array.from({ length: count }, (_, n) => n + 1);
      const named = (name: string) => ({ directory, cpus, profile, name: `${name}-${backend}` });
      const pids: Record<string, number> = { ...place.pids };
      const generators: Target[] = [];
      const hotStream = newStream("hot");
      for (const n of numbers) {
        const worker = await startWorker(named(`worker${n}`), place);
        closers.push(() => worker.stop());
        const receiver = await startReceiver(named(`receiver${n}`), place);
        closers.push(() => receiver.process.stop());
        const generator = startLoadGenerator({
          directory,
          cpus,
          connections: connections / count,
        });
        closers.push(() => generator.stop());
        Object.assign(pids, {
          [`worker${n}`]: worker.pid,
          [`receiver${n}`]: receiver.process.pid,
          [`generator${n}`]: generator.process.pid,
        });
        // All send states of the same order, each once.
        const hot = { ...hotStream, nextEvent: n * eventsApart };
        generators.push({ generator, port: receiver.port, hot });
      }
      const client = new pg.Client({ connectionString: place.databaseUrl });
      await client.connect();
      closers.push(() => client.end());
      // A new process compiles its code and fills its caches in its first thousands of events; each has its share of them.
      await load(generators, "distinct", 4 * count);
      await untilApplied(client);
      const measure = async (kind: keyof Round): Promise<Measured> => {
        let stopMeter: () => CpuUse = () => ({});
        const { accepted, startedAtMs } = await load(generators, kind, options.seconds, () => {
          stopMeter = meterCpu(pids);
        });
        await untilApplied(client);
        const seconds = (Date.now() - startedAtMs) / 1_000;
        return measured(accepted / seconds, stopMeter());
      };
      return { distinct: await measure("distinct"), hot: await measure("hot") };
    } finally {
      for (const close of closers.reverse()) await close();
    }
  });

/** More than one generator sends. */
const eventsApart = 10_000_000;

interface Target {
  generator: LoadGenerator;
  port: number;
  hot: SentStream;
}

/** All begin together, when the last has made its requests. */
async function load(targets: readonly Target[], kind: keyof Round, seconds: number, onStart = () => {}) {
  let waiting = targets.length;
  const reports = await Promise.all(
    targets.map(({ generator, port, hot }) => {
      const of = kind === "hot" ? hot : generator.sent;
      const maxEvents = Math.ceil((seconds * 12_000) / targets.length);
      return generator.run({ of, port, plan: { kind: "closed", seconds, maxEvents } }, () => {
        waiting -= 1;
        if (waiting === 0) onStart();
      });
    }),
  );
  return {
    accepted: reports.reduce((sum, { accepted }) => sum + accepted, 0),
    startedAtMs: Math.max(...reports.map(({ startedAtMs }) => startedAtMs)),
  };
}

/** One figure for all workers, one for all receivers and so on. */
function summed(cpu: CpuUse): CpuUse {
  const sums: CpuUse = {};
  for (const [name, used] of Object.entries(cpu)) {
    const kind = name.replace(/\d+$/, "");
    sums[kind] = (sums[kind] ?? 0) + used;
  }
  return sums;
}
