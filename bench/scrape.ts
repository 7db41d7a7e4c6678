import pg from "pg";
import { loadConfig } from "../src/app/config/config.ts";
import { addDatabaseMetrics, openMetricsDatabase } from "../src/app/metrics/database-metrics.ts";
import { createRuntime } from "../src/app/create-runtime.ts";
import { createLog } from "../src/platform/log.ts";
import { createMetrics } from "../src/platform/metrics/registry.ts";
import type { Benchmark } from "./benchmark.ts";
import { meterSeconds } from "./support/cpu-meter.ts";
import { openGrown } from "./support/grown-database.ts";
import { fillTraces, peopleLookAt } from "./support/grown-traces.ts";
import { median, spreadOf } from "./support/statistics.ts";
import { allParts } from "../src/main/parts.ts";

const eventsPerOrder = 5;
const scrapesPerRound = 20;
/** At most as often as the database is read. */
const everyMs = 15_000;
const wantedMs = 100;

interface Round {
  /** One duration a scrape. */
  ms: number[];
  /** CPU milliseconds of one scrape. */
  postgres: number;
  own: number;
}

/** The cost of one scrape that reads the database, with a year of history and with an empty database. */
export const scrape: Benchmark = {
  name: "scrape",
  isOnlyByName: true,
  title: "One scrape that reads the database, with a year of history and beside an empty one",
  async run(_stand, options, say) {
    const grown = { orders: options.orders, events: options.orders * eventsPerOrder };
    const server = await openGrown(grown, options.settings, say);
    try {
      say("adding alerts, findings and the like");
      const client = new pg.Client({ connectionString: server.grownUrl });
      await client.connect();
      await fillTraces(client, grown);
      await client.end();
      const [empty, full]: [Round[], Round[]] = [[], []];
      for (let n = 0; n < options.rounds; n++) {
        say(`round ${n + 1} of ${options.rounds}`);
        empty.push(await scrapeRound(server.emptyUrl, server.postgres.pid));
        full.push(await scrapeRound(server.grownUrl, server.postgres.pid));
      }
      const { max } = spreadOf(full.flatMap(({ ms }) => ms));
      return {
        rows: [rowOf("empty", empty), rowOf("grown", full)],
        targets: [
          {
            what: "slowest scrape of the grown database",
            wanted: `< ${wantedMs} ms`,
            measured: `${max.toFixed(0)} ms`,
            reached: max < wantedMs,
          },
        ],
        notes: [
          "ms: from the question to the page; CPU ms: of one scrape, medians of the rounds",
          `share: of one CPU, read every ${everyMs / 1_000} s`,
        ],
      };
    } finally {
      await server.close();
    }
  },
};

async function scrapeRound(url: string, postgresPid: number): Promise<Round> {
  let nowMs = peopleLookAt.getTime();
  const log = createLog({ level: "error", name: "bench" });
  const runtime = createRuntime(allParts, loadConfig({ DATABASE_URL: url }), log, {
    wallClock: { now: () => new Date(nowMs) },
  });
  try {
    const metrics = createMetrics({ log });
    await addDatabaseMetrics(metrics, runtime, await openMetricsDatabase(runtime));
    // Connects, and reads what the server reads once for each connection.
    await metrics.text();
    const ms: number[] = [];
    const seconds = meterSeconds({ postgres: postgresPid });
    const before = process.cpuUsage();
    for (let n = 0; n < scrapesPerRound; n++) {
      // What was read is no longer kept.
      nowMs += everyMs;
      const beganMs = performance.now();
      await metrics.text();
      ms.push(performance.now() - beganMs);
    }
    const { user, system } = process.cpuUsage(before);
    return {
      ms,
      postgres: ((seconds()["postgres"] ?? 0) * 1_000) / scrapesPerRound,
      own: (user + system) / 1_000 / scrapesPerRound,
    };
  } finally {
    await runtime.close();
  }
}

function rowOf(database: string, rounds: readonly Round[]) {
  const { p50, max } = spreadOf(rounds.flatMap(({ ms }) => ms));
  const [postgres, own] = [median(rounds.map((round) => round.postgres)), median(rounds.map((round) => round.own))];
  return {
    database,
    "p50 ms": p50.toFixed(1),
    "max ms": max.toFixed(1),
    "postgres CPU ms": postgres.toFixed(1),
    "own CPU ms": own.toFixed(1),
    share: `${(((postgres + own) / everyMs) * 100).toFixed(3)} %`,
  };
}
