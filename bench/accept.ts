import pg from "pg";
import type { Benchmark, BenchOptions, Target } from "./benchmark.ts";
import { closedLoop } from "./support/applied-round.ts";
import { type CpuUse, meterCpu } from "./support/cpu-meter.ts";
import { describeCpu } from "./support/format.ts";
import { type LoadGenerator, type SentStream, newStream, startLoadGenerator } from "./support/load-generator.ts";
import { type CpuSet, pinningNote, placement } from "./support/pinning.ts";
import { whenQuiet } from "./support/quiet.ts";
import type { Mix } from "./load/protocol.ts";
import type { DataPlace, QueueBackend, Stand } from "./support/stand.ts";
import { median } from "./support/statistics.ts";
import { checkStored } from "./support/stored-events.ts";
import { type RunningServer, startOtherServer, startReceiver } from "./support/tallyhook.ts";

interface Candidate {
  name: string;
  /** Several processes share the connections. */
  servers: readonly RunningServer[];
  /** The deliveries sent so far. Candidates with one database share it. */
  sent: SentStream;
  /** Compares its database with what it answered, if it has one. */
  check: () => Promise<void>;
  /** Other processes that work for this server. */
  pids: Readonly<Record<string, number>>;
  rates: number[];
  p99s: number[];
  /** CPU time of the servers for one event, in µs. Varies less than the rate when the machine is busy. */
  costs: number[];
  cpu: CpuUse;
}

/** Requests made for each second. A server that accepts more is done early, and rightly timed. */
const mostPerSecond = 20_000;
const reference = "Koa + raw-body + HMAC";
const twoReferences = "two processes of it";
const floor = "floor: one, with JSON.parse and one INSERT";
const receiverName = (backend: QueueBackend) => `receiver, durable, queue on ${backend}`;
const twoReceiversName = (backend: QueueBackend) => `two receivers, durable, queue on ${backend}`;

/** (a) Deliveries acknowledged durably per second, compared with servers that store nothing. */
export const accept: Benchmark = {
  name: "accept",
  title: "Deliveries acknowledged a second, 64 connections, closed loop",
  async run(stand, options, say) {
    const { directory } = stand;
    const { profile } = options;
    const mix = options.mix ?? "plain";
    const generator = startLoadGenerator({ directory, cpus: placement.others });
    const running: RunningServer[] = [];
    try {
      const others: Candidate[] = [];
      for (const { label, processes, ...server } of otherServers) {
        const servers = await startAll(running, processes, (cpus, suffix) =>
          startOtherServer({ directory, cpus, profile }, { ...server, name: `${server.name}${suffix}` }),
        );
        others.push(candidate({ name: label, servers, sent: newStream(mix) }));
      }
      const measured = await withPlaces(stand, async (floorUrl, places) => {
        const all = [...others];
        const clients: pg.Client[] = [];
        try {
          all.push(await startFloor(running, clients, { stand, floorUrl, profile, mix }));
          for (const [backend, place] of places) {
            const sent = newStream(mix);
            const client = new pg.Client({ connectionString: place.databaseUrl });
            await client.connect();
            clients.push(client);
            const check = () => checkStored(client, sent, { isApplied: false });
            for (const processes of [1, 2]) {
              const servers = await startAll(running, processes, (cpus, suffix) =>
                startReceiver({ directory, cpus, profile, name: `receiver-${backend}${suffix}` }, place),
              );
              const name = processes === 1 ? receiverName(backend) : twoReceiversName(backend);
              all.push(candidate({ name, servers, sent, check, pids: place.pids }));
            }
          }
          await alternate(all, generator, options, say);
          return all;
        } finally {
          // Before their databases are dropped.
          await stopAll(running);
          for (const client of clients) await client.end();
        }
      });
      return report(stand, measured);
    } finally {
      await generator.stop();
      await stopAll(running);
    }
  },
};

const source = {
  bareNode: new URL("servers/bare-node.ts", import.meta.url),
  bareKoa: new URL("servers/bare-koa.ts", import.meta.url),
  unstored: new URL("servers/unstored.ts", import.meta.url),
  floor: new URL("servers/floor.ts", import.meta.url),
};

const otherServers = [
  { label: "node:http + HMAC", name: "bare-node", source: source.bareNode, processes: 1 },
  { label: reference, name: "bare-koa", source: source.bareKoa, processes: 1 },
  { label: twoReferences, name: "bare-koa", source: source.bareKoa, processes: 2 },
  {
    label: "one, with JSON.parse",
    name: "bare-koa-parse",
    source: source.bareKoa,
    args: ["parse"],
    processes: 1,
  },
  { label: "receiver, nothing stored", name: "unstored", source: source.unstored, processes: 1 },
];

const candidate = (
  known: Pick<Candidate, "name" | "servers" | "sent"> & Partial<Pick<Candidate, "check" | "pids">>,
): Candidate => ({
  check: () => Promise.resolve(),
  pids: {},
  rates: [],
  p99s: [],
  costs: [],
  cpu: {},
  ...known,
});

/** Starts the processes of one candidate. One has a CPU to itself; two share all of them with the rest. */
async function startAll(
  running: RunningServer[],
  processes: number,
  start: (cpus: CpuSet, suffix: string) => Promise<RunningServer>,
): Promise<RunningServer[]> {
  const servers: RunningServer[] = [];
  for (let n = 1; n <= processes; n++) {
    const isAlone = processes === 1;
    const server = await start(isAlone ? placement.server : placement.all, isAlone ? "" : `-${n}-of-${processes}`);
    servers.push(server);
    running.push(server);
  }
  return servers;
}

async function stopAll(running: RunningServer[]): Promise<void> {
  for (const server of running.splice(0)) await server.process.stop();
}

/** Measures a durable receiver that does nothing else. */
async function startFloor(
  running: RunningServer[],
  clients: pg.Client[],
  {
    stand: { directory, postgres },
    floorUrl,
    profile,
    mix,
  }: { stand: Stand; floorUrl: string; profile: boolean; mix: Mix },
): Promise<Candidate> {
  const sent = newStream(mix);
  const servers = await startAll(running, 1, (cpus) =>
    startOtherServer(
      { directory, cpus, profile },
      { name: "floor", source: source.floor, env: { DATABASE_URL: floorUrl } },
    ),
  );
  const client = new pg.Client({ connectionString: floorUrl });
  await client.connect();
  clients.push(client);
  const check = async () => {
    const { rows } = await client.query<{ n: number }>("select count(*)::int as n from floor_events");
    if (rows[0]?.n !== sent.distinct) {
      throw new Error(`the floor stored ${rows[0]?.n} events, and answered 200 to ${sent.distinct}`);
    }
  };
  return candidate({ name: floor, servers, sent, check, pids: { postgres: postgres.pid } });
}

/** An empty database for the floor, and one for each backend, while the work is done. */
async function withPlaces<T>(
  stand: Stand,
  work: (floorUrl: string, places: [QueueBackend, DataPlace][]) => Promise<T>,
): Promise<T> {
  const all = async (
    [backend, ...rest]: readonly QueueBackend[],
    floorUrl: string,
    places: [QueueBackend, DataPlace][],
  ): Promise<T> =>
    backend === undefined
      ? work(floorUrl, places)
      : stand.withDatabase(backend, placement.others, (place) => all(rest, floorUrl, [...places, [backend, place]]));
  return stand.withEmptyDatabase(placement.others, (url) => all(stand.backends, url, []));
}

/** Measures the candidates in turn, round after round, so that a slow minute of the machine affects all of them. */
async function alternate(
  candidates: readonly Candidate[],
  generator: LoadGenerator,
  { seconds, rounds, patient }: BenchOptions,
  say: (line: string) => void,
): Promise<void> {
  const load = (each: Candidate, forSeconds: number, onStart?: () => void) =>
    generator.run(
      {
        port: each.servers.map(({ port }) => port),
        of: each.sent,
        plan: closedLoop(forSeconds, mostPerSecond),
      },
      onStart,
    );
  for (const each of candidates) await load(each, Math.min(2, seconds));
  for (let round = 1; round <= rounds; round++) {
    for (const each of candidates) {
      const { result, cpu } = await whenQuiet({ patient }, async () => {
        let stopMeter: () => CpuUse = () => ({});
        const measured = await load(each, seconds, () => {
          stopMeter = meterCpu(programsOf(each, generator));
        });
        const used = stopMeter();
        await each.check();
        return { result: measured, cpu: used };
      });
      const perSecond = result.accepted / result.seconds;
      each.cpu = cpu;
      each.rates.push(perSecond);
      each.costs.push((serverCpus(cpu) * 1e6) / perSecond);
      each.p99s.push(result.latencyMs.p99);
      say(`round ${round}: ${each.name}: ${Math.round(perSecond)}/s`);
    }
  }
}

function programsOf({ servers, pids }: Candidate, generator: LoadGenerator) {
  const own = servers.map(({ process }, n) => [n === 0 ? "server" : `server ${n + 1}`, process.pid]);
  return { ...Object.fromEntries(own), generator: generator.process.pid, ...pids } as Record<string, number>;
}

const serverCpus = (cpu: CpuUse): number =>
  Object.entries(cpu).reduce((sum, [name, used]) => (name.startsWith("server") ? sum + used : sum), 0);

function report({ backends }: Stand, candidates: readonly Candidate[]) {
  const ratio = (name: string, to: string): number => {
    const base = candidates.find((each) => each.name === to)?.rates ?? [];
    const { rates = [] } = candidates.find((each) => each.name === name) ?? {};
    return median(rates.map((rate, n) => rate / (base[n] ?? Number.NaN)));
  };
  const rows = candidates.map((each) => ({
    server: each.name,
    "per second": Math.round(median(each.rates)),
    lowest: Math.round(Math.min(...each.rates)),
    highest: Math.round(Math.max(...each.rates)),
    "to bare Koa": ratio(each.name, reference).toFixed(2),
    "to two of it": ratio(each.name, twoReferences).toFixed(2),
    "to the floor": ratio(each.name, floor).toFixed(2),
    "CPU µs": Math.round(median(each.costs)),
    "p99 ms": median(each.p99s).toFixed(1),
    "CPUs in use": describeCpu(each.cpu),
  }));
  const target = (what: string, wanted: number, measured: number): Target => ({
    what,
    wanted: `≥ ${wanted.toFixed(2)}`,
    measured: measured.toFixed(2),
    reached: measured >= wanted,
  });
  const targets = backends.flatMap((backend) => {
    const [one, two] = [receiverName(backend), twoReceiversName(backend)];
    return [
      target(`${one}, to bare Koa`, 0.55, ratio(one, reference)),
      target(`${two}, to bare Koa`, 0.6, ratio(two, reference)),
      target(`${two}, to two of bare Koa`, 0.6, ratio(two, twoReferences)),
    ];
  });
  const notes = [
    `${candidates[0]?.sent.stream.mix} mix; after each round, what is stored was compared with what was answered 200`,
    pinningNote,
    "two processes of a server may use every CPU, each has a port, and the generator spreads its connections",
    "the floor has one table, no limit, no deadline and no wake-up: what Koa and one INSERT cost at the least",
    "a ratio is the median of the rounds' ratios",
  ];
  return { rows, targets, notes };
}
