import { rm } from "node:fs/promises";
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from "../../src/platform/embedded/embedded-postgres.ts";
import { createLog } from "../../src/platform/log.ts";
import { migrateSchema } from "../../src/main/schema.ts";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { commandLine } from "../../src/platform/process-table.ts";
import { migrateQueueSchema } from "../../src/queue/backend.ts";
import { makeDataDir } from "./data-directory.ts";
import { eventually } from "./eventually.ts";
import { childrenOf, crash, signalIfThere, signalTree } from "./process-tree.ts";

export interface OwnServer {
  /** A migrated database, with the queue's schema. The same over restarts. */
  readonly url: string;
  readonly dataDir: string;
  /** kill -9 of the server and all its processes at once, as a crash of the machine; returns when it is gone. */
  kill(): Promise<void>;
  /** kill -9 of one process that serves a client: the server then ends all others and recovers by itself. */
  killBackend(random: () => number): Promise<void>;
  /** Holds all its processes where they are: connections stay open and nothing answers. */
  pause(): void;
  resume(): void;
  /** Starts it again after `kill` or `stop`, with recovery. */
  restart(): Promise<void>;
  /** Fast shutdown. */
  stop(): Promise<void>;
  /** Stops it and removes its data. Idempotent. */
  destroy(): Promise<void>;
}

/** A server for tests that kill it: fsync and synchronous_commit as in production unless `settings` say otherwise. */
export async function startOwnServer(settings: Record<string, string> = {}): Promise<OwnServer> {
  const dataDir = await makeDataDir();
  const log = createLog({ level: "silent", name: "test" });
  const start = () => startEmbeddedPostgres({ dataDir, log, settings });
  let server: EmbeddedPostgres = await start();
  const { url } = server;
  // The server is no child of ours and would outlive a test run that is killed.
  const killWithTests = (): void => void signalIfThere(server.pid, "SIGQUIT");
  process.once("exit", killWithTests);
  const db = createDatabase({ url, poolMax: 1, applicationName: "tallyhook test" });
  await migrateSchema(db);
  await db.destroy();
  await migrateQueueSchema(url);
  return {
    url,
    dataDir,
    async kill() {
      // A process of it that ends last holds its port until then.
      const all = [server.pid, ...childrenOf(server.pid)];
      crash(server.pid);
      await eventually("the server is gone", () => all.every((pid) => commandLine(pid) === null));
    },
    async killBackend(random) {
      const backends = childrenOf(server.pid).filter((pid) =>
        commandLine(pid)?.includes("127.0.0.1"),
      );
      const victim = backends[Math.floor(random() * backends.length)];
      if (victim === undefined) throw new Error("no client is connected to the server");
      process.kill(victim, "SIGKILL");
      await eventually("the process is gone", () => commandLine(victim) === null);
    },
    pause: () => signalTree(server.pid, "SIGSTOP"),
    resume: () => signalTree(server.pid, "SIGCONT"),
    async restart() {
      const previous = server;
      server = await start();
      await previous.stop();
      if (server.url !== url) throw new Error("another program has taken the server's port");
    },
    stop: () => server.stop(),
    async destroy() {
      if (commandLine(server.pid) !== null) signalTree(server.pid, "SIGCONT");
      await server.remove();
      await rm(dataDir, { recursive: true, force: true });
      process.removeListener("exit", killWithTests);
    },
  };
}
