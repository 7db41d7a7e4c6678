import { once } from "node:events";
import pg from "pg";
import type { Benchmark, BenchOptions, Target } from "./benchmark.ts";
import { compiled } from "./support/compile.ts";
import { endedChildrenSeconds, meterSeconds } from "./support/cpu-meter.ts";
import { fillYearOfOrders } from "./support/fill-year.ts";
import { describeMicros } from "./support/format.ts";
import { placement } from "./support/pinning.ts";
import { startProcess } from "./support/processes.ts";
import { sampleMemory } from "./support/resident-memory.ts";
import type { DataPlace, Stand } from "./support/stand.ts";
import { nodeArgs, startOtherServer } from "./support/tallyhook.ts";

const sizes = [10_000, 100_000, 1_000_000];
const wantedPerSecond = 30_000;
const wantedMegabytes = 200;
const wantedGrowth = 1.25;

export interface MeasuredRun {
  orders: number;
  perSecond: number;
  megabytes: number;
  /** CPU time of each program for one order, in µs. */
  cpuMicros: Readonly<Record<string, number>>;
}

/** (g) A run over a mirror that equals the service: the cost of comparing, without healing. */
export const reconcile: Benchmark = {
  name: "reconcile",
  title: "Orders compared in their full content, pages of 100, all equal",
  async run(stand, options, say) {
    const measured: MeasuredRun[] = [];
    for (const orders of sizes) {
      const one = await measure(stand, options, orders);
      say(`${orders} orders: ${Math.round(one.perSecond)}/s, ${Math.round(one.megabytes)} MB`);
      measured.push(one);
    }
    const [, middle, large] = measured;
    const growth = (large?.megabytes ?? 0) / (middle?.megabytes ?? 1);
    return {
      rows: measured.map(({ orders, perSecond, megabytes, cpuMicros }) => ({
        orders,
        "orders/s": Math.round(perSecond),
        "most MB": Math.round(megabytes),
        "CPU µs an order": describeMicros(cpuMicros),
      })),
      targets: [
        ...reconcileTargets(measured.slice(1)),
        target("memory at 1,000,000 over 100,000", `< ${wantedGrowth}`, growth.toFixed(2), growth < wantedGrowth),
      ],
      notes: ["the service generates its pages in a process of its own; start and probing count"],
    };
  },
};

/** Only for runs that are large enough. */
export function reconcileTargets(measured: readonly MeasuredRun[]): Target[] {
  const slowest = Math.min(...measured.map(({ perSecond }) => perSecond));
  const most = Math.max(...measured.map(({ megabytes }) => megabytes));
  return [
    target("orders compared", `≥ ${wantedPerSecond}/s`, `${Math.round(slowest)}/s`, slowest >= wantedPerSecond),
    target("memory", `< ${wantedMegabytes} MB`, `${Math.round(most)} MB`, most < wantedMegabytes),
  ];
}

const target = (what: string, wanted: string, measured: string, reached: boolean) => ({
  what,
  wanted,
  measured,
  reached,
});

const measure = (stand: Stand, options: BenchOptions, orders: number): Promise<MeasuredRun> =>
  stand.withDatabase("postgres", placement.all, async ({ databaseUrl, pids }) => {
    const client = new pg.Client({ connectionString: databaseUrl });
    await client.connect();
    try {
      await fillYearOfOrders(client, orders);
      return await reconcileOrders({ stand, client, databaseUrl, pids }, options, orders);
    } finally {
      await client.end();
    }
  });

interface Mirror {
  stand: Pick<Stand, "directory">;
  client: pg.Client;
  databaseUrl: string;
  pids: DataPlace["pids"];
}

/**
 * One run over a mirror that holds the orders of a filled year, none of them changed since, and no other object. Throws
 * unless all are equal.
 */
export async function reconcileOrders(
  { stand, client, databaseUrl, pids }: Mirror,
  { profile }: Pick<BenchOptions, "profile">,
  orders: number,
): Promise<MeasuredRun> {
  const placed = { directory: stand.directory, cpus: placement.all, profile: false };
  const source = new URL("./servers/generated-orders.ts", import.meta.url);
  const name = `service-${orders}`;
  const service = await startOtherServer(placed, { name, source, args: [String(orders)] });
  try {
    const run = startProcess({
      ...placed,
      profile,
      name: `reconcile-${orders}`,
      file: compiled(new URL("./servers/tallyhook.ts", import.meta.url)),
      // A range run, which does not check the invariants: they are not measured here.
      nodeArgs,
      args: ["reconcile", "--from", "2000-01-01T00:00:00Z", "--json", "--fail-on-drift"],
      env: {
        DATABASE_URL: databaseUrl,
        SVC_BASE_URL: `http://127.0.0.1:${service.port}`,
        SVC_API_KEY: "svc_test_sk_bench",
      },
    });
    run.died.catch(() => {});
    const stop = sampleMemory({ run: run.pid });
    const [spent, meter] = [endedChildrenSeconds(), meterSeconds(pids)];
    const [code] = (await once(run.child, "exit")) as [number | null];
    const seconds = { run: endedChildrenSeconds() - spent, ...meter() };
    const megabytes = Math.max(...(stop()["run"] ?? []).map((sample) => sample.megabytes));
    if (code !== 0) throw new Error(`the run ended with ${code}: see ${stand.directory}`);
    const { rows } = await client.query<{ rows: string; seconds: string }>(
      `select (select sum(rows) from reconcile.coverage c where c.run = r.id) as rows,
              extract(epoch from finished_at - started_at) as seconds
       from reconcile.runs r where kind = 'range' order by id desc limit 1`,
    );
    const [row] = rows;
    if (Number(row?.rows) !== orders) throw new Error(`${row?.rows} of ${orders} orders were read`);
    const cpuMicros = Object.fromEntries(
      Object.entries(seconds).map(([program, used]) => [program, (used * 1e6) / orders]),
    );
    return { orders, perSecond: orders / Number(row?.seconds), megabytes, cpuMicros };
  } finally {
    await service.process.stop();
  }
}
