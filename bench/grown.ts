import pg from "pg";
import type { Benchmark, BenchOptions, BenchResult, Target } from "./benchmark.ts";
import { reconcileOrders, reconcileTargets } from "./reconcile.ts";
import { describeRead, measureReports, slowestReport } from "./reports.ts";
import type { Cell } from "./support/format.ts";
import { describeMicros } from "./support/format.ts";
import { type Cost, type GrowthRound, costsOf, medianRatio } from "./support/growth.ts";
import { type GrownServer, openGrown } from "./support/grown-database.ts";
import { applyStored, startStore } from "./support/grown-rounds.ts";
import { hidingOtherTables } from "./support/hide-tables.ts";
import type { Stand } from "./support/stand.ts";

const eventsPerOrder = 5;
const wantedCost = 1.3;
const wantedWal = 2;
const eventsPerSecond = 2_000;
/** Several jobs: what the worker applies while it starts is not measured. */
const leastEvents = 4_000;

/** The cost of an event on a database with a year of history, against the same event on an empty one. */
export const grown: Benchmark = {
  name: "grown",
  isOnlyByName: true,
  title: "An event's cost with a year of history, beside an empty database",
  async run(stand, options, say) {
    const server = await openGrown(
      { orders: options.orders, events: options.orders * eventsPerOrder },
      options.settings,
      say,
    );
    try {
      // The reads come first: the rounds change orders, which the service of the reconciliation does not know.
      const reads = await measureReads(stand, server, options, say);
      if (options.readsOnly) return { ...reads, notes: readNotes };
      const rounds = await measureGrowth(stand, server, options, say);
      return {
        rows: [...costRows(rounds), ...reads.rows],
        targets: [...costTargets(rounds), ...reads.targets],
        notes: [
          "cost: CPU time of PostgreSQL and of the receiver (store) or the worker (apply)",
          "ratios are medians of the rounds' ratios; after a checkpoint, each page's first change is logged whole",
          "steady: no checkpoint was forced; those that the server makes by itself fall where they fall",
          "of eight events three are about an order of the past year, any of them",
          ...readNotes,
        ],
      };
    } finally {
      await server.close();
    }
  },
};

const readNotes = ["reports: CPU time of PostgreSQL and of this process; in a quiet hour the two work side by side"];

/** All rounds after a checkpoint come first, so that the steady ones follow each other. */
async function measureGrowth(
  stand: Pick<Stand, "directory">,
  server: GrownServer,
  options: Pick<BenchOptions, "orders" | "rounds" | "seconds" | "profile">,
  say: (line: string) => void,
): Promise<GrowthRound[]> {
  const { postgres } = server;
  const place = { directory: stand.directory, postgresPid: postgres.pid, profile: options.profile };
  const stores = {
    empty: await startStore(place, "empty", server.emptyUrl),
    grown: await startStore(place, "grown", server.grownUrl),
  };
  const count = Math.max(leastEvents, Math.ceil(options.seconds * eventsPerSecond));
  const rounds: GrowthRound[] = [];
  let next = 0;
  try {
    // The first statements on a fresh copy read the catalogue and plan.
    for (const store of Object.values(stores)) {
      await store.run({ first: next, count: leastEvents, orders: options.orders }, { checkpoint: false });
      await applyStored(place, store, { checkpoint: false });
    }
    next += leastEvents;
    for (const moment of ["after a checkpoint", "steady"] as const) {
      for (let round = 1; round <= options.rounds; round++) {
        const events = { first: next, count, orders: options.orders };
        next += count;
        const measured: Partial<Record<keyof typeof stores, { store: Cost; apply: Cost }>> = {};
        for (const [name, store] of Object.entries(stores) as [keyof typeof stores, typeof stores.empty][]) {
          const checkpoint = moment === "after a checkpoint";
          const stored = await store.run(events, { checkpoint });
          const applied = await applyStored(place, store, { checkpoint });
          measured[name] = { store: stored, apply: applied };
        }
        const { empty, grown: full } = measured;
        if (empty === undefined || full === undefined) throw new Error("a database was left out");
        for (const phase of ["store", "apply"] as const) {
          const one = { phase, moment, empty: empty[phase], grown: full[phase] };
          rounds.push(one);
          say(`round ${round}, ${phase}, ${moment}: ${describe(one.empty)}; grown ${describe(one.grown)}`);
        }
      }
    }
    return rounds;
  } finally {
    for (const store of Object.values(stores)) await store.stop();
  }
}

const describe = ({ cpuMicros, walBytes }: Cost): string =>
  `${describeMicros(cpuMicros)}, ${(walBytes / 1_024).toFixed(1)} KB`;

const parts = (["store", "apply"] as const).flatMap((phase) =>
  (["after a checkpoint", "steady"] as const).map((moment) => ({ phase, moment })),
);

const costRows = (rounds: readonly GrowthRound[]): Record<string, Cell>[] =>
  parts.map(({ phase, moment }) => {
    const { empty, grown: full } = costsOf(rounds, phase, moment);
    const { cost, wal } = medianRatio(rounds, phase, moment);
    return {
      what: `${phase}, ${moment}`,
      "empty, µs": describeMicros(empty.cpuMicros),
      "grown, µs": describeMicros(full.cpuMicros),
      ratio: cost.toFixed(2),
      "WAL, KB": `${(empty.walBytes / 1_024).toFixed(1)}, ${(full.walBytes / 1_024).toFixed(1)}`,
      "WAL ratio": wal.toFixed(2),
    };
  });

const costTargets = (rounds: readonly GrowthRound[]): Target[] =>
  parts.flatMap(({ phase, moment }) => {
    const { cost, wal } = medianRatio(rounds, phase, moment);
    const target = (what: string, ratio: number, most: number): Target => ({
      what: `${phase}, ${moment}: ${what}, grown to empty`,
      wanted: `≤ ${most.toFixed(1)}`,
      measured: ratio.toFixed(2),
      reached: ratio <= most,
    });
    return [target("cost", cost, wantedCost), target("WAL", wal, wantedWal)];
  });

async function measureReads(
  stand: Pick<Stand, "directory">,
  { postgres, grownUrl: databaseUrl }: GrownServer,
  options: BenchOptions,
  say: (line: string) => void,
): Promise<Pick<BenchResult, "rows" | "targets">> {
  const pids = { postgres: postgres.pid };
  const reports = await measureReports({ databaseUrl, pids }, say);
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const mirror = { stand, client, databaseUrl, pids };
    const run = await hidingOtherTables(client, () => reconcileOrders(mirror, options, options.orders));
    const row = (what: string, value: string): Record<string, Cell> => ({
      what,
      "empty, µs": "",
      "grown, µs": value,
      ratio: "",
      "WAL, KB": "",
      "WAL ratio": "",
    });
    return {
      rows: [
        row(
          "an order compared",
          `${describeMicros(run.cpuMicros)}; ${Math.round(run.perSecond)}/s, ${Math.round(run.megabytes)} MB`,
        ),
        ...reports.map(({ name, now, past }) =>
          row(`report ${name}`, `${describeRead(now)}; as of a month before ${describeRead(past)}`),
        ),
      ],
      targets: [
        ...reconcileTargets([run]),
        slowestReport(reports, `over ${options.orders.toLocaleString("en")} orders`),
      ],
    };
  } finally {
    await client.end();
  }
}
