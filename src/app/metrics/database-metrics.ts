import type { Knex } from "knex";
import { createKeptReading } from "../../platform/metrics/kept-reading.ts";
import type { Metrics } from "../../platform/metrics/registry.ts";
import { createDatabase } from "../../platform/postgres/pool.ts";
import type { Runtime } from "../runtime.ts";
import { metric } from "./metric.ts";

/** A scrape every 15 s reads once, however many scrapers there are. */
const limits = { freshMs: 15_000, waitMs: 4_000, retryMs: 5_000 };
/** For one statement. PostgreSQL ends it, so that a slow one does not overlap with the next. */
const statementTimeoutMs = 3_000;
/** Longer than a statement may take: then its connection is dead, and the next one opens another. */
const receiveTimeoutMs = 3_500;

/** Reports each reading's success. `parts`: the names of all readings. */
export const readSuccess = (parts: readonly string[]) =>
  metric(
    "tallyhook_database_read_success",
    "1 where the last reading of these gauges succeeded; at 0 they are absent.",
    {
      labels: { part: parts },
      alerts: ["TallyhookDatabaseUnreadable", "TallyhookNotProved"],
    },
  );

/** Has one connection: a pool without a free one is reported without waiting. It ends with the runtime. */
export async function openMetricsDatabase(runtime: Runtime): Promise<Knex> {
  const { log, secrets } = runtime;
  const db = createDatabase({
    url: await runtime.databaseUrl(),
    pooling: secrets.databaseDirectUrl === null ? undefined : "transaction",
    poolMax: 1,
    statementTimeoutMs,
    receiveTimeoutMs,
    applicationName: "tallyhook metrics",
    log,
  });
  runtime.onClose(() => db.destroy());
  return db;
}

/**
 * Adds what the parts read from database and queue: each reading is made by itself, so that one that fails takes no other
 * with it.
 */
export async function addDatabaseMetrics(
  metrics: Metrics,
  runtime: Pick<Runtime, "config" | "log" | "wallClock" | "serviceClock" | "queue" | "parts">,
  db: Knex,
): Promise<void> {
  const { config, log, wallClock: clock, serviceClock } = runtime;
  const tools = { db, config, clock, serviceClock, queue: await runtime.queue() };
  const readings = runtime.parts
    .flatMap((part) => part.metrics ?? [])
    .map(({ name, read, gives }) => {
      const kept = createKeptReading({ log, clock, name }, limits, () => read(tools));
      for (const { metric: given, samples } of gives) {
        metrics.read(given, async () => {
          const found = await kept.current();
          return found === null ? [] : samples(found, tools);
        });
      }
      return { name, kept };
    });
  metrics.read(readSuccess(readings.map(({ name }) => name)), () =>
    Promise.all(
      readings.map(async ({ name, kept }) => {
        // Of this scrape, not of the one before.
        await kept.current();
        return { labels: { part: name }, value: kept.isReadable() ? 1 : 0 };
      }),
    ),
  );
}
