import { existsSync } from "node:fs";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Redis } from "ioredis";
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
  stopAbandonedPostgres,
} from "../../src/platform/embedded/embedded-postgres.ts";
import { createLog } from "../../src/platform/log.ts";
import { commandLine } from "../../src/platform/process-table.ts";
import { type RedisServer, redisInstalled, startRedis } from "../../test/support/redis.ts";
import { databaseUrl, withServer } from "../../test/support/server-commands.ts";
import { formatTable } from "./format.ts";
import { migrate } from "./migrate.ts";
import { type CpuSet, pinTree } from "./pinning.ts";
import { benchDirectory } from "./places.ts";
import { statementSettings, topStatements } from "./statement-statistics.ts";

export type QueueBackend = "postgres" | "redis";

/** Shared by all benchmarks of a run. */
export interface Stand {
  /** Logs and profiles of this run. */
  readonly directory: string;
  readonly postgres: EmbeddedPostgres;
  /** Includes Redis only if it is installed. */
  readonly backends: readonly QueueBackend[];
  /** Runs with its own migrated database and, for the Redis backend, an empty Redis. Removes them afterwards. */
  withDatabase<T>(backend: QueueBackend, cpus: CpuSet, work: (place: DataPlace) => Promise<T>): Promise<T>;
  /** Runs with a database of its own without tables, on the same server. Removes it afterwards. */
  withEmptyDatabase<T>(cpus: CpuSet, work: (databaseUrl: string) => Promise<T>): Promise<T>;
  /** Stops all servers of the stand, also those that are in use. */
  close(): Promise<void>;
}

export interface DataPlace {
  readonly databaseUrl: string;
  /** Null: the queue is in the database. */
  readonly redisUrl: string | null;
  /** Keyed by name, for the CPU meter. */
  readonly pids: Readonly<Record<string, number>>;
}

/** Migrated once and used for both backends. */
const template = "bench_template";

/** Starts PostgreSQL for this run only, with the settings of the embedded one and `settings`: fsync is on. */
export async function createStand({
  profile,
  settings: own,
}: {
  profile: boolean;
  settings: Readonly<Record<string, string>>;
}): Promise<Stand> {
  await removeAbandonedRuns();
  const directory = join(benchDirectory, `run-${process.pid}`);
  await mkdir(directory, { recursive: true });
  const log = createLog({ level: "silent", name: "bench" });
  // Records the time of each commit, so that a benchmark can ask when an event was applied.
  const settings = { track_commit_timestamp: "on", ...(profile ? statementSettings : {}), ...own };
  const postgres = await startEmbeddedPostgres({ dataDir: directory, log, settings });
  try {
    await withServer(postgres.url, (client) => client.query(`create database ${template}`));
    await migrate(databaseUrl(postgres.url, template));
  } catch (error) {
    await postgres.remove();
    throw error;
  }
  const redisServers = new Set<RedisServer>();
  let databases = 0;

  async function inDatabase<T>(from: string, cpus: CpuSet, work: (name: string) => Promise<T>): Promise<T> {
    pinTree(postgres.pid, cpus);
    const name = `bench_${++databases}`;
    await withServer(postgres.url, (client) => client.query(`create database ${name} template ${from}`));
    try {
      return await work(name);
    } finally {
      await withServer(postgres.url, (client) => client.query(`drop database ${name} with (force)`));
      // Writes this benchmark's dirty pages now, so that they are not written during the next.
      await withServer(postgres.url, (client) => client.query("checkpoint"));
    }
  }

  return {
    directory,
    postgres,
    backends: redisInstalled ? ["postgres", "redis"] : ["postgres"],
    async withDatabase(backend, cpus, work) {
      return inDatabase(template, cpus, async (name) => {
        const url = databaseUrl(postgres.url, name);
        const redis = backend === "redis" ? await startPinnedRedis(cpus, redisServers) : null;
        try {
          const result = await work({
            databaseUrl: url,
            redisUrl: redis?.url ?? null,
            pids: { postgres: postgres.pid, ...(redis === null ? {} : { redis: redis.pid }) },
          });
          if (profile) {
            await writeFile(join(directory, `${name}-statements.txt`), formatTable(await topStatements(url)));
          }
          return result;
        } finally {
          await redis?.stop();
        }
      });
    },
    withEmptyDatabase: (cpus, work) => inDatabase("template1", cpus, (name) => work(databaseUrl(postgres.url, name))),
    async close() {
      for (const server of redisServers) await server.stop();
      await postgres.remove();
      await rm(join(directory, "postgres"), { recursive: true, force: true });
    },
  };
}

/** Removes what killed runs left behind, including running servers, and the logs and profiles of other runs. */
async function removeAbandonedRuns(): Promise<void> {
  await mkdir(benchDirectory, { recursive: true });
  for (const name of await readdir(benchDirectory)) {
    const pid = Number(/^run-(\d+)$/.exec(name)?.[1]);
    if (!(pid > 0) || commandLine(pid) !== null) continue;
    const directory = join(benchDirectory, name);
    // A run that ended properly has removed its server.
    if (existsSync(join(directory, "postgres", "users"))) await stopAbandonedPostgres(directory);
    await rm(directory, { recursive: true, force: true });
  }
}

/** Starts Redis as docker-compose.yml does: with an append-only file, synced every second. */
async function startPinnedRedis(cpus: CpuSet, started: Set<RedisServer>) {
  const server = await startRedis();
  started.add(server);
  const client = new Redis(server.port, "127.0.0.1");
  try {
    await client.config("SET", "appendfsync", "everysec");
    await client.config("SET", "appendonly", "yes");
    const pid = Number(/process_id:(\d+)/.exec(await client.info("server"))?.[1]);
    pinTree(pid, cpus);
    return { ...server, pid };
  } finally {
    client.disconnect();
  }
}
