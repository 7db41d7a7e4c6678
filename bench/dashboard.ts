import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Knex } from "knex";
import { loadConfig } from "../src/app/config/config.ts";
import { pageGroups } from "../src/main/run-dashboard.ts";
import { createRuntime } from "../src/app/create-runtime.ts";
import { createSignIn } from "../src/app/people/sign-in.ts";
import { roleNames } from "../src/app/people/permissions.ts";
import { createLog } from "../src/platform/log.ts";
import { createDatabase } from "../src/platform/postgres/pool.ts";
import type { Benchmark, BenchOptions, BenchResult, Target } from "./benchmark.ts";
import {
  type MeasuredPage,
  limitsMs,
  loadPage,
  measurePages,
  p95Of,
  pagesOf,
  signIn,
} from "./support/dashboard-pages.ts";
import { type GrownServer, openGrown } from "./support/grown-database.ts";
import { fillTraces, peopleLookAt } from "./support/grown-traces.ts";
import { startLoadGenerator } from "./support/load-generator.ts";
import { placement } from "./support/pinning.ts";
import type { Stand } from "./support/stand.ts";
import { median } from "./support/statistics.ts";
import { startDashboard, startReceiver, startWorker } from "./support/tallyhook.ts";
import { allParts } from "../src/main/parts.ts";

const eventsPerOrder = 5;
const people = 20;
/** The mean time on a page before the next click. */
const looksMs = 2_000;
const perSecond = 100;
const wantedRatio = 1.1;

/** How long pages take with a year of history, and how much their visitors cost the receiver. */
export const dashboard: Benchmark = {
  name: "dashboard",
  isOnlyByName: true,
  title: `Every page with a year of history; p99 of the 2xx beside ${people} people who click`,
  async run(stand, options, say) {
    const grown = { orders: options.orders, events: options.orders * eventsPerOrder };
    const server = await openGrown(grown, options.settings, say);
    try {
      say("adding alerts, findings, people and the like");
      const client = new pg.Client({ connectionString: server.grownUrl });
      await client.connect();
      await fillTraces(client, grown);
      await client.end();
      return await measure(stand, server, options, say);
    } finally {
      await server.close();
    }
  },
};

async function measure(
  stand: Pick<Stand, "directory">,
  { postgres, grownUrl: databaseUrl }: GrownServer,
  options: BenchOptions,
  say: (line: string) => void,
): Promise<BenchResult> {
  const place = { databaseUrl, redisUrl: null, pids: { postgres: postgres.pid } };
  const placed = { directory: stand.directory, cpus: placement.all, profile: options.profile };
  const db = createDatabase({ url: databaseUrl, poolMax: 2, applicationName: "bench dashboard" });
  const { process: child, port } = await startDashboard(placed, place, peopleLookAt);
  const url = `http://127.0.0.1:${port}`;
  try {
    const cookie = await signIn(db, roleNames, peopleLookAt);
    const groups = await groupsOf(databaseUrl, db);
    const kinds = ["page", "report", "service"] as const;
    const addresses = await pagesOf(db, groups, { url, cookie }, kinds);
    const pids = { ...place.pids, dashboard: child.pid };
    const pages = await measurePages(db, { url, pids }, { addresses, times: options.rounds, now: peopleLookAt, say });
    const quick = pages.filter(({ kind, times }) => kind === "page" && times.length > 0);
    const clicked = quick.map(({ address }) => `${url}${address}`);
    const receiver = await withReceiver(placed, place, options, say, (stop) => click(clicked, cookie, stop));
    return {
      rows: pages.map(rowOf),
      targets: [...pageTargets(pages), receiver],
      notes: [
        "from the request to the last byte, one request at a time, by each role that may see the page",
        "CPU: of PostgreSQL and of the dashboard, for one request; on a busy machine it says more than the clock",
        "report: a page that reads a whole report; service: one that asks the service, which is not there",
        `receiver: ${perSecond} events/s; rounds with and without the people alternate; their browsers are this process`,
      ],
    };
  } finally {
    await child.stop();
    await db.destroy();
  }
}

/** Only for their routes: the pages come from the built program. */
async function groupsOf(databaseUrl: string, db: Knex) {
  const log = createLog({ level: "silent", name: "bench" });
  const runtime = createRuntime(allParts, loadConfig({ DATABASE_URL: databaseUrl }), log);
  const { wallClock: clock, encryption } = runtime;
  const groups = await pageGroups(runtime, {
    own: createSignIn({ db, clock, encryption }),
    oidc: null,
  });
  await runtime.close();
  return groups;
}

/** The p99 of the 2xx while people click, to that without them. */
async function withReceiver(
  placed: Parameters<typeof startReceiver>[0],
  place: Parameters<typeof startReceiver>[1],
  { rounds, seconds }: BenchOptions,
  say: (line: string) => void,
  clickUntil: (stop: AbortSignal) => Promise<number>,
): Promise<Target> {
  const worker = await startWorker(placed, place);
  const { process: receiver, port } = await startReceiver(placed, place);
  const generator = startLoadGenerator(placed);
  try {
    const p99 = async (forSeconds: number): Promise<number> => {
      const plan = { kind: "open" as const, seconds: forSeconds, perSecond, reportAcks: false };
      return (await generator.run({ port, plan })).latencyMs.p99;
    };
    await p99(Math.min(2, seconds));
    const ratios: number[] = [];
    for (let round = 1; round <= rounds; round++) {
      const without = await p99(seconds);
      const stop = new AbortController();
      const clicking = clickUntil(stop.signal);
      const beside = await p99(seconds);
      stop.abort();
      const pages = await clicking;
      ratios.push(beside / without);
      say(
        `round ${round}: p99 ${beside.toFixed(1)} ms beside people who loaded ${pages} pages, ${without.toFixed(1)} without`,
      );
    }
    const ratio = median(ratios);
    return {
      what: `p99 of the 2xx beside ${people} people, to that without`,
      wanted: `≤ ${wantedRatio.toFixed(2)}`,
      measured: ratio.toFixed(2),
      reached: ratio <= wantedRatio,
    };
  } finally {
    await generator.stop();
    await receiver.stop();
    await worker.stop();
  }
}

/**
 * Visitors who open one page after the other, each from a different start, until they stop. Returns the number of
 * pages.
 */
async function click(addresses: readonly string[], cookie: string, stop: AbortSignal): Promise<number> {
  let seen = 0;
  setMaxListeners(people, stop);
  const person = async (n: number): Promise<void> => {
    for (let at = n * 7; !stop.aborted; at++) {
      // They start one after another.
      const waits = at === n * 7 ? (looksMs * n) / people : looksMs;
      await sleep(waits, undefined, { signal: stop }).catch(() => {});
      if (stop.aborted) return;
      await loadPage(addresses[at % addresses.length] ?? "", cookie);
      seen++;
    }
  };
  await Promise.all(Array.from({ length: people }, (_, n) => person(n)));
  return seen;
}

const rowOf = ({ address, kind, times, cpuMs }: MeasuredPage) => ({
  page: address,
  waits: kind,
  "p50 ms": median(times).toFixed(0),
  "p95 ms": p95Of(times).toFixed(0),
  "CPU ms": Object.entries(cpuMs)
    .map(([name, ms]) => `${name} ${ms.toFixed(0)}`)
    .join(", "),
});

/** The slowest of each kind, and the number of pages over their limit. */
export function pageTargets(pages: readonly MeasuredPage[]): Target[] {
  return (["page", "report"] as const).flatMap((kind) => {
    const of = pages.filter((page) => page.kind === kind && page.times.length > 0);
    const [slowest] = of.toSorted((a, b) => p95Of(b.times) - p95Of(a.times));
    if (slowest === undefined) return [];
    const limit = limitsMs[kind];
    const late = of.filter(({ times }) => p95Of(times) >= limit).length;
    return [
      {
        what: `p95 of the slowest of ${of.length}, ${kind} (${slowest.address})`,
        wanted: `< ${limit} ms`,
        measured: `${p95Of(slowest.times).toFixed(0)} ms; ${late} are slower than wanted`,
        reached: late === 0,
      },
    ];
  });
}
