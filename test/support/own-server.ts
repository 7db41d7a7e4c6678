import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/platform/embedded/embedded-postgres.ts";
import { withExclusiveLock } from "../../src/platform/exclusive-lock.ts";
import { createLog } from "../../src/platform/log.ts";
import { migrateSchema } from "../../src/main/schema.ts";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { commandLine } from "../../src/platform/process-table.ts";
import { migrateQueueSchema } from "../../src/core/queue/backend.ts";
import { makeDataDir } from "./data-directory.ts";
import { eventually } from "./eventually.ts";
import { childrenOf, crash, signalIfThere, signalTree } from "./process-tree.ts";

export interface OwnServer {
  /** A migrated database, with the queue's schema. The same over restarts. */
  readonly url: string;
  readonly dataDir: string;
  /** kill -9 of the server and all its processes together, as a crash of the machine; returns when it is gone. */
  kill(): Promise<void>;
  /** kill -9 of one process that serves a client: the server then ends all others and recovers by itself. */
  killBackend(random: () => number): Promise<void>;
  /** Stops all its processes: connections stay open without an answer. */
  pause(): void;
  resume(): void;
  /** Starts it again after `kill` or `stop`, with recovery. */
  restart(): Promise<void>;
  /** Fast shutdown. */
  stop(): Promise<void>;
  /** Stops it and removes its data. Idempotent. */
  destroy(): Promise<void>;
}

const log = createLog({ level: "silent", name: "test" });

/** A server for tests that kill it: fsync and synchronous_commit as in production unless `settings` override them. */
export async function startOwnServer(settings: Record<string, string> = {}): Promise<OwnServer> {
  const dataDir = await copyServer(await preparedServer());
  const start = () => startEmbeddedPostgres({ dataDir, log, settings });
  let server: EmbeddedPostgres = await start();
  const { url } = server;
  // The server is no child of ours and would outlive a test run that is killed.
  const killWithTests = (): void => void signalIfThere(server.pid, "SIGQUIT");
  process.once("exit", killWithTests);
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
      const backends = childrenOf(server.pid).filter((pid) => commandLine(pid)?.includes("127.0.0.1"));
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

/**
 * The data directory of a stopped server whose database is migrated. A run makes it once, when the first test needs it:
 * a copy costs a tenth of what making another one does.
 */
async function preparedServer(): Promise<string> {
  const dataDir = join(tmpdir(), "tallyhook-prepared");
  await mkdir(dataDir, { recursive: true });
  await chmod(dataDir, 0o755);
  const done = join(dataDir, "done");
  const prepare = async (): Promise<void> => {
    if (existsSync(done)) return;
    const server = await startEmbeddedPostgres({ dataDir, log, settings: { fsync: "off" } });
    try {
      const { url } = server;
      const db = createDatabase({ url, poolMax: 1, applicationName: "tallyhook test" });
      try {
        await migrateSchema(db);
      } finally {
        await db.destroy();
      }
      await migrateQueueSchema(url);
    } finally {
      await server.stop();
    }
    await writeFile(done, "");
  };
  await withExclusiveLock(dataDir, prepare, { timeoutMs: 120_000 });
  return dataDir;
}

/** Copies a stopped server's data directory, except its port. */
export async function copyServer(dataDir: string): Promise<string> {
  const copy = await makeDataDir();
  const [from, to] = [join(dataDir, "postgres"), join(copy, "postgres")];
  await mkdir(to);
  const cp = (options: string, names: readonly string[]) =>
    promisify(execFile)("cp", [options, ...names.map((name) => join(from, name)), to]);
  // PostgreSQL does not run as root: the files keep the owner that they have.
  await cp("-a", ["cluster", "password"]);
  // The programs are never written to.
  const programs = (await readdir(from)).filter((name) => name.startsWith("binaries-"));
  await cp("-al", programs);
  return copy;
}
