import { rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { EmbeddedPostgres } from "../../src/platform/embedded-postgres.ts";
import { startEmbeddedPostgres } from "../../src/platform/embedded-postgres.ts";
import { createLog } from "../../src/platform/log.ts";
import { migrateToLatest } from "../../src/platform/migrations.ts";
import { createDatabase } from "../../src/platform/postgres.ts";
import { commandLine } from "../../src/platform/process-table.ts";
import { makeDataDir } from "./data-directory.ts";

export interface OwnServer {
  /** A migrated database. Stays the same over restarts, unless another program takes the port meanwhile. */
  url: string;
  dataDir: string;
  /** kill -9 of the server; returns when it is gone. */
  kill(): Promise<void>;
  /** Starts it again after `kill` or `stop`, with recovery. */
  restart(): Promise<void>;
  /** Fast shutdown. */
  stop(): Promise<void>;
  /** Stops it and removes its data. */
  destroy(): Promise<void>;
}

/** A server for tests that kill it: fsync and synchronous_commit as in production unless `settings` say otherwise. */
export async function startOwnServer(settings: Record<string, string> = {}): Promise<OwnServer> {
  const dataDir = await makeDataDir();
  const log = createLog({ level: "silent", name: "test" });
  const start = () => startEmbeddedPostgres({ dataDir, log, settings });
  let server: EmbeddedPostgres = await start();
  const db = createDatabase({ url: server.url, poolMax: 1, applicationName: "tallyhook test" });
  await migrateToLatest(db);
  await db.destroy();
  return {
    dataDir,
    get url() {
      return server.url;
    },
    async kill() {
      process.kill(server.pid, "SIGKILL");
      while (commandLine(server.pid) !== null) await sleep(5);
    },
    async restart() {
      const previous = server;
      server = await start();
      await previous.stop();
    },
    stop: () => server.stop(),
    async destroy() {
      await server.remove();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
