import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readdirSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrateSchema } from "../../src/main/schema.ts";
import { createDatabase } from "../../src/platform/postgres/pool.ts";
import { migrateQueueSchema } from "../../src/core/queue/backend.ts";
import { eventually } from "./eventually.ts";
import { freePort } from "./free-port.ts";
import { signalTree } from "./process-tree.ts";
import { databaseUrl, withServer } from "./server-commands.ts";
import { waitForStandby } from "./standby.ts";

const versions = "/usr/lib/postgresql";
/** The programs of the newest version of Debian's package `postgresql`; null where it is not installed. */
const programs: string | null = existsSync(versions)
  ? (readdirSync(versions)
      .sort((a, b) => Number(b) - Number(a))
      .map((version) => join(versions, version, "bin"))
      .find((bin) => existsSync(join(bin, "initdb"))) ?? null)
  : null;

export const debianPostgresInstalled = programs !== null;

export interface DebianPostgres {
  /** A migrated database of the primary, with the queue's schema. */
  readonly url: string;
  /** Log file of the primary, with SQLSTATEs. */
  readonly logFile: string;
  /** Holds the standby, for which every commit waits, where it is. */
  freezeStandby(): void;
  thawStandby(): void;
  destroy(): Promise<void>;
}

export interface PlainServer {
  url: string;
  destroy(): Promise<void>;
}

/** An empty server of Debian's package. It has the pg_dump that its version needs. */
export const startDebianServer = (): Promise<PlainServer> => startPlainServer(() => programs ?? "");

/** An empty server. `programsIn` gets a folder and returns that of initdb and postgres. */
export async function startPlainServer(
  programsIn: (directory: string) => Promise<string> | string,
): Promise<PlainServer> {
  const directory = await mkdtemp(join(tmpdir(), "tallyhook-debian-"));
  await chmod(directory, 0o777);
  const bin = await programsIn(directory);
  const data = join(directory, "data");
  initialize(data, bin);
  const server = await start(data, { fsync: "off" }, bin);
  return {
    url: `postgres://tallyhook:none@127.0.0.1:${server.port}/postgres`,
    async destroy() {
      await server.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

const settings = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  max_connections: "200",
  wal_level: "replica",
  log_line_prefix: "%m [%p] %e ",
};

/** A primary of Debian's package and its synchronous standby, made by pg_basebackup. */
export async function startDebianPostgres(): Promise<DebianPostgres> {
  const directory = await mkdtemp(join(tmpdir(), "tallyhook-debian-"));
  await chmod(directory, 0o777);
  const [primaryData, standbyData] = ["primary", "standby"].map((name) => join(directory, name));
  if (primaryData === undefined || standbyData === undefined) throw new Error("no directories");
  const stops: (() => Promise<void>)[] = [];
  const destroy = async (): Promise<void> => {
    for (const stop of stops.splice(0).reverse()) await stop();
    await rm(directory, { recursive: true, force: true });
  };
  try {
    initialize(primaryData);
    const primary = await start(primaryData);
    stops.push(primary.stop);
    const base = `postgres://tallyhook:none@127.0.0.1:${primary.port}`;
    const url = databaseUrl(base, "tallyhook");
    await withServer(databaseUrl(base, "postgres"), (client) => client.query("create database tallyhook"));
    const db = createDatabase({ url, poolMax: 1, applicationName: "tallyhook test" });
    await migrateSchema(db);
    await db.destroy();
    await migrateQueueSchema(url);
    const from = `host=127.0.0.1 port=${primary.port} user=tallyhook application_name=standby`;
    run("pg_basebackup", ["-D", standbyData, "-d", from, "-R", "-c", "fast"]);
    const standby = await start(standbyData);
    stops.push(standby.stop);
    await waitForStandby(url);
    return {
      url,
      logFile: `${primaryData}.log`,
      freezeStandby: () => signalTree(standby.pid, "SIGSTOP"),
      thawStandby: () => signalTree(standby.pid, "SIGCONT"),
      destroy,
    };
  } catch (error) {
    await destroy();
    throw error;
  }
}

/** PostgreSQL refuses to run as root. */
const account = (): { uid: number; gid: number } | Record<string, never> => {
  if (process.getuid?.() !== 0) return {};
  const id = (what: string) => Number(execFileSync("id", [what, "postgres"], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
};

const initialize = (dataDir: string, bin?: string): void =>
  run("initdb", ["-D", dataDir, "-U", "tallyhook", "--auth=trust", "-E", "UTF8", "--locale=C"], bin);

function run(program: string, args: readonly string[], bin = programs ?? ""): void {
  execFileSync(join(bin, program), args, { ...account(), cwd: "/", stdio: "pipe" });
}

async function start(
  dataDir: string,
  more: Readonly<Record<string, string>> = {},
  bin = programs ?? "",
): Promise<{ pid: number; port: number; stop(): Promise<void> }> {
  const port = await freePort();
  const log = openSync(`${dataDir}.log`, "a", 0o644);
  const options = Object.entries({ ...settings, ...more }).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const args = ["-D", dataDir, "-p", String(port), ...options];
  const child = spawn(join(bin, "postgres"), args, {
    ...account(),
    cwd: "/",
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  const { pid } = child;
  if (pid === undefined) throw new Error("the server was not started");
  const ended = once(child, "exit");
  // One that a test forgot would outlive the run.
  const killWithTests = (): void => void child.kill("SIGQUIT");
  process.once("exit", killWithTests);
  await eventually("the server answers", () => {
    if (child.exitCode !== null) throw new Error(`it ended: see ${dataDir}.log`);
    return withServer(`postgres://tallyhook@127.0.0.1:${port}/postgres`, () => Promise.resolve(true));
  });
  return {
    pid,
    port,
    async stop() {
      signalTree(pid, "SIGCONT");
      // A fast shutdown would wait for the standby.
      child.kill("SIGQUIT");
      await ended;
      process.removeListener("exit", killWithTests);
    },
  };
}
