import pg from "pg";
import { withServer } from "../test/support/server-commands.ts";
import type { Benchmark, BenchOptions } from "./benchmark.ts";
import { stripeRow } from "./load/stripe-events.ts";
import { benchSecret } from "./load/signed-request.ts";
import type { PeerSettings } from "./servers/stripe-sync-engine.ts";
import { type AppliedRound, appliedRound, closedLoop, mostAppliedPerSecond } from "./support/applied-round.ts";
import { type CpuUse, meterCpu } from "./support/cpu-meter.ts";
import { describeCost } from "./support/format.ts";
import { newStream, startLoadGenerator } from "./support/load-generator.ts";
import { installPeer, peerName, peerVersion } from "./support/peer-package.ts";
import { placement } from "./support/pinning.ts";
import { leastDisturbed, whenQuiet } from "./support/quiet.ts";
import type { QueueBackend, Stand } from "./support/stand.ts";
import { median } from "./support/statistics.ts";
import { withSystem } from "./support/system.ts";
import { type RunningServer, nodeArgs, startOtherServer } from "./support/tallyhook.ts";

const wantedRatio = 2;
/** Connections of the peer to its database, for any number of its processes. */
const poolMax = 20;

interface Candidate {
  name: string;
  isPeer: boolean;
  round: (seconds: number) => Promise<AppliedRound>;
  rounds: AppliedRound[];
}

/**
 * The whole way of an event, compared with supabase's stripe sync engine, which applies a webhook before it answers and
 * stores no bytes, no history and no ids of events. Both have one PostgreSQL and take turns, round by round.
 */
export const peer: Benchmark = {
  name: "peer",
  title: `Events accepted and applied a second beside ${peerName} ${peerVersion}, 64 connections, closed loop`,
  async run(stand, options, say) {
    const installed = await installPeer();
    if ("problem" in installed) {
      return { rows: [], targets: [], notes: [`skipped: ${installed.problem}`] };
    }
    const { directory } = installed;
    return withPeer(stand, { directory, processes: 1 }, (one) =>
      withPeer(stand, { directory, processes: 2 }, (two) =>
        withOwn(stand, options, stand.backends, async (own) => {
          const all = [one, two, ...own];
          await alternate(stand, all, options, say);
          return report(all);
        }),
      ),
    );
  },
};

/** Our receiver and worker, once for each backend. */
async function withOwn<T>(
  stand: Stand,
  options: BenchOptions,
  [backend, ...rest]: readonly QueueBackend[],
  work: (own: Candidate[]) => Promise<T>,
): Promise<T> {
  if (backend === undefined) return work([]);
  return withSystem(stand, backend, options, (system) => {
    const own: Candidate = {
      name: `Tallyhook, queue on ${backend}`,
      isPeer: false,
      round: (seconds) => appliedRound(system, seconds),
      rounds: [],
    };
    return withOwn(stand, options, rest, (others) => work([own, ...others]));
  });
}

/** The peer in one or two processes, which share the generator's connections. */
function withPeer<T>(
  stand: Stand,
  { directory, processes }: { directory: string; processes: number },
  work: (candidate: Candidate) => Promise<T>,
): Promise<T> {
  const placed = { directory: stand.directory, cpus: placement.all, profile: false };
  return stand.withEmptyDatabase(placement.all, async (databaseUrl) => {
    const settings: PeerSettings = {
      directory,
      packageName: peerName,
      databaseUrl,
      poolMax: poolMax / processes,
      webhookSecret: benchSecret,
    };
    // Its migrations give a function to this role.
    await withServer(databaseUrl, (client) =>
      client.query("do $$ begin create role postgres; exception when duplicate_object then null; end $$"),
    );
    const servers: RunningServer[] = [];
    const sent = newStream("stripe");
    const generator = startLoadGenerator(placed, sent);
    const client = new pg.Client({ connectionString: databaseUrl });
    await client.connect();
    try {
      // One after the other, since each migrates.
      for (let n = 1; n <= processes; n++) {
        servers.push(
          await startOtherServer(placed, {
            name: `peer-${n}-of-${processes}`,
            source: new URL("servers/stripe-sync-engine.ts", import.meta.url),
            nodeArgs,
            env: { PEER: JSON.stringify(settings) },
          }),
        );
      }
      const pids = {
        postgres: stand.postgres.pid,
        ...Object.fromEntries(servers.map(({ process }, n) => [`peer ${n + 1}`, process.pid])),
        generator: generator.process.pid,
      };
      const port = servers.map((server) => server.port);
      const expected = new ExpectedRows();
      const round = async (seconds: number): Promise<AppliedRound> => {
        let stopMeter: () => CpuUse = () => ({});
        const first = sent.nextEvent;
        const { accepted, ...report } = await generator.run(
          { port, plan: closedLoop(seconds, mostAppliedPerSecond) },
          () => (stopMeter = meterCpu(pids)),
        );
        const cpu = stopMeter();
        for (let n = first; n < sent.nextEvent; n++) expected.add(stripeRow(sent.stream, n));
        await expected.check(client);
        const perSecond = accepted / report.seconds;
        // It answers when it has applied.
        return {
          accepted,
          acceptedPerSecond: perSecond,
          appliedPerSecond: perSecond,
          meteredPerSecond: perSecond,
          cpu,
        };
      };
      const name = `stripe sync engine, ${processes === 1 ? "one process" : "two processes"}`;
      return await Promise.race([
        work({ name, isPeer: true, round, rounds: [] }),
        ...servers.map(({ process }) => process.died),
      ]);
    } finally {
      for (const server of servers) await server.process.stop();
      await generator.stop();
      await client.end();
    }
  });
}

/** The rows that the peer must have, by table and id, with their status. */
class ExpectedRows {
  readonly #statuses = new Map<string, Map<string, string | null>>();

  add({ table, id, status }: ReturnType<typeof stripeRow>): void {
    const rows = this.#statuses.get(table) ?? new Map<string, string | null>();
    this.#statuses.set(table, rows.set(id, status));
  }

  /** Throws if the peer answered 200 and stored something else: it would be faster than it is. */
  async check(client: pg.Client): Promise<void> {
    for (const [table, rows] of this.#statuses) {
      const status = table === "customers" ? "null" : "status::text";
      const { rows: stored } = await client.query<{ status: string | null; n: number }>(
        `select ${status} as status, count(*)::int as n from stripe.${table} group by 1`,
      );
      const found = new Map(stored.map((each) => [each.status, each.n]));
      const wanted = new Map<string | null, number>();
      for (const each of rows.values()) wanted.set(each, (wanted.get(each) ?? 0) + 1);
      for (const key of new Set([...found.keys(), ...wanted.keys()])) {
        const [is, should] = [found.get(key) ?? 0, wanted.get(key) ?? 0];
        if (is === should) continue;
        throw new Error(`the peer answered 200 and stored ${is} of ${should} rows of ${table} with status ${key}`);
      }
    }
    const { rows } = await client.query<{ items: number; subscriptions: number }>(
      "select (select count(*)::int from stripe.subscription_items) as items, (select count(*)::int from stripe.subscriptions) as subscriptions",
    );
    if (rows[0]?.items !== rows[0]?.subscriptions)
      throw new Error("the peer answered 200 and did not store an item of each subscription");
  }
}

/** Measures the candidates in turn, so that a slow minute of the machine affects all of them. */
async function alternate(
  { postgres }: Stand,
  candidates: readonly Candidate[],
  options: BenchOptions,
  say: (line: string) => void,
): Promise<void> {
  for (const { round } of candidates) await round(Math.min(2, options.seconds));
  for (let n = 1; n <= options.rounds; n++) {
    for (const { name, round, rounds } of candidates) {
      const measured = await whenQuiet(options, async () => {
        // What the one before has written is not to be written at the expense of this one.
        await withServer(postgres.url, (client) => client.query("checkpoint"));
        return round(options.seconds);
      });
      say(`round ${n}: ${name}: ${Math.round(measured.appliedPerSecond)}/s`);
      rounds.push(measured);
    }
  }
}

const rateOf = ({ appliedPerSecond }: AppliedRound): number => appliedPerSecond;
/** CPU time of all programs for one event, in µs. */
const costOf = ({ cpu, meteredPerSecond }: AppliedRound): number => describeCost(cpu, meteredPerSecond).micros;

function report(candidates: readonly Candidate[]) {
  const over = (a: Candidate, b: Candidate, of: (round: AppliedRound) => number): number =>
    median(a.rounds.map((round, n) => of(round) / of(b.rounds[n] ?? round)));
  const peers = candidates.filter(({ isPeer }) => isPeer);
  const fastest = peers.reduce((best, each) => (over(each, best, rateOf) > 1 ? each : best));
  const rows = candidates.map((each) => {
    const rates = each.rounds.map(rateOf);
    const { cpu, meteredPerSecond } = leastDisturbed(each.rounds);
    return {
      program: each.name,
      "applied/s": Math.round(median(rates)),
      lowest: Math.round(Math.min(...rates)),
      highest: Math.round(Math.max(...rates)),
      "to the peer": over(each, fastest, rateOf).toFixed(2),
      "CPU µs an event": Math.round(median(each.rounds.map(costOf))),
      "the peer's CPU over it": over(fastest, each, costOf).toFixed(2),
      "of it, least disturbed round": describeCost(cpu, meteredPerSecond).costs,
      elsewhere: (cpu["elsewhere"] ?? 0).toFixed(2),
    };
  });
  const targets = candidates
    .filter(({ isPeer }) => !isPeer)
    .map((each) => ({
      what: `accepted and applied, ${each.name}, to ${fastest.name}`,
      wanted: `≥ ${wantedRatio.toFixed(2)}`,
      measured: over(each, fastest, rateOf).toFixed(2),
      reached: over(each, fastest, rateOf) >= wantedRatio,
    }));
  const notes = [
    `the peer's events are Stripe's, as large as ours and in the shares of the plain mix; it has ${poolMax} connections`,
    "after each round, its rows and their states were compared with what it answered 200, and ours likewise",
    `a ratio is the median of the rounds' ratios to ${fastest.name}, the faster of its two forms`,
    "nothing is pinned; all candidates run throughout, and those not measured are idle",
  ];
  return { rows, targets, notes };
}
