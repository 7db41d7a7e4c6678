import { spawn } from "node:child_process";
import { type FileHandle, readFile, rename, stat } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { UnreachableError } from "../errors.ts";
import { openLogFile, readIfExists, writeAtomically } from "../files.ts";
import { errorCode } from "../postgres/errors.ts";
import { withSessionSettings } from "../postgres/session-settings.ts";
import { commandLine } from "../process-table.ts";
import { type Binaries, lastLines, serverEnvironment, superuser } from "./cluster.ts";
import { type DataPlace, runAs } from "./place.ts";
import { onDemand } from "../on-demand.ts";

/** Options of the server (`-c name=value`). */
export type ServerSettings = Readonly<Record<string, string>>;

const defaultSettings: ServerSettings = {
  // Only this machine, only TCP: the path of a socket would have to be short and readable by both users.
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  // A webhook is durable before its 2xx because of these three, which are the defaults. They are stated so that none is
  // dropped.
  fsync: "on",
  full_page_writes: "on",
  synchronous_commit: "on",
  // No replica exists, so the WAL need not carry what only a replica needs.
  wal_level: "minimal",
  max_wal_senders: "0",
  max_connections: "100",
  // After a checkpoint the first change of each page logs the whole page. Costs no memory; the log still stays below
  // the default max_wal_size of 1 GB.
  checkpoint_timeout: "15min",
  jit: "off",
  timezone: "UTC",
  log_timezone: "UTC",
};

/** How long a server that exits early is started again. */
const retryMs = 5_000;
const maxLogBytes = 10_000_000;

/**
 * Starts the server in a session of its own, so that neither Ctrl-C in our terminal nor the end of our process stops
 * it, and waits until it accepts connections. A server that exits early (its port was taken, children of a killed
 * server still hold its memory) is started again for some seconds.
 */
export async function startServer(
  place: DataPlace,
  binaries: Binaries,
  password: string,
  options: { settings: ServerSettings; timeoutMs: number },
): Promise<RunningServer> {
  const startedMs = performance.now();
  for (;;) {
    const port = await choosePort(place);
    const server = await spawnServer(place, binaries, { ...defaultSettings, ...options.settings }, port);
    const isReady = await waitUntilReady(server, place, port, password, options.timeoutMs);
    if (isReady && server.pid !== undefined) {
      await writeAtomically(join(place.base, "port"), `${port}\n`);
      return { pid: server.pid, port };
    }
    if (performance.now() - startedMs > Math.min(retryMs, options.timeoutMs)) {
      const log = await logTail(place);
      throw new UnreachableError(
        `The embedded PostgreSQL does not start. Its log is ${logFile(place)}, which ends:\n${lastLines(log)}`,
        { cause: new Error(log) },
      );
    }
    await sleep(250);
  }
}

/**
 * Stops the server that runs on this data: fast shutdown (open transactions are rolled back, clients are disconnected,
 * a checkpoint is written); after `timeoutMs` immediate shutdown, which costs a recovery at the next start. Does
 * nothing when none runs. Returns when the server has ended.
 */
export async function stopServer(place: DataPlace, timeoutMs: number): Promise<void> {
  for (const signal of ["SIGINT", "SIGQUIT", "SIGKILL"] as const) {
    const recorded = await readPostmasterPid(place.cluster);
    if (recorded === null || !isPostmaster(recorded.pid, place.cluster)) return;
    process.kill(recorded.pid, signal);
    const deadlineMs = performance.now() + timeoutMs;
    while (isPostmaster(recorded.pid, place.cluster)) {
      if (performance.now() > deadlineMs) break;
      await sleep(pollMs);
    }
  }
}

interface SpawnedServer {
  pid: number | undefined;
  hasEnded: boolean;
  /** The reason why it could not even be started. */
  failure: Error | null;
}

async function spawnServer(
  place: DataPlace,
  binaries: Binaries,
  settings: ServerSettings,
  port: number,
): Promise<SpawnedServer> {
  const options = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  // PostgreSQL refuses to start when the id in a stale postmaster.pid now belongs to another process, as often happens
  // in a restarted container. `findRunning` has checked that this process is no server. With this variable PostgreSQL
  // ignores that id, and still checks that no process uses the old server's memory.
  const stale = await readPostmasterPid(place.cluster);
  const env = { ...serverEnvironment, ...(stale && { PG_GRANDPARENT_PID: String(stale.pid) }) };
  const log = await openLog(place);
  try {
    const child = spawn(binaries.postgres, ["-D", place.cluster, "-p", String(port), ...options], {
      ...runAs(place.account),
      cwd: place.root,
      env,
      detached: true,
      stdio: ["ignore", log.fd, log.fd],
    });
    child.unref();
    // Attached before anything else: a server that rejects its settings ends within milliseconds.
    const server: SpawnedServer = { pid: child.pid, hasEnded: false, failure: null };
    child.once("exit", () => (server.hasEnded = true));
    child.once("error", (error) => (server.failure = error));
    return server;
  } finally {
    await log.close();
  }
}

/** False when the process ended before it accepted connections. */
async function waitUntilReady(
  server: SpawnedServer,
  place: DataPlace,
  port: number,
  password: string,
  timeoutMs: number,
): Promise<boolean> {
  const deadlineMs = performance.now() + timeoutMs;
  while (!server.hasEnded) {
    if (server.failure !== null) {
      throw new UnreachableError(
        `The server program of the embedded PostgreSQL in ${place.root} cannot be run ` +
          `(${errorCode(server.failure)}). Check who may execute it, and that the file system allows programs.`,
        { cause: server.failure },
      );
    }
    // Another program may have taken the port since it was chosen: only an answer of our own server counts.
    const isBound = (await readPostmasterPid(place.cluster))?.pid === server.pid;
    if (isBound && (await tryLogin(port, password, place))) return true;
    if (performance.now() > deadlineMs) throw notReady(place, timeoutMs);
    await sleep(pollMs);
  }
  return false;
}

/** The port of the last run when it is free, so that a remembered URL still reaches the server. */
async function choosePort(place: DataPlace): Promise<number> {
  const last = Number(await readIfExists(join(place.base, "port")));
  return freePort(last).catch(() => freePort(0));
}

function freePort(preferred: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen({ port: preferred, host: "127.0.0.1", exclusive: true }, () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

async function openLog(place: DataPlace): Promise<FileHandle> {
  const path = logFile(place);
  const size = await stat(path).then(
    (found) => found.size,
    () => 0,
  );
  if (size > maxLogBytes) await rename(path, `${path}.1`);
  return openLogFile(path, 0o640);
}

async function logTail(place: DataPlace): Promise<string> {
  const text = await readFile(logFile(place), "utf8").catch(() => "(no log)");
  return text.slice(-2_000).trim();
}

export interface RunningServer {
  pid: number;
  port: number;
}

const pollMs = 20;

export const logFile = (place: DataPlace): string => join(place.root, "server.log");

/** `sslmode` is explicit: otherwise a PGSSLMODE meant for another server would apply to this one. */
export const connectionUrl = (port: number, password: string, database: string): string =>
  `postgres://${superuser}:${password}@127.0.0.1:${port}/${database}?sslmode=disable`;

/**
 * The server that runs on this data, once it accepts connections; null when none runs. The process is recognised by its
 * command line, since the id in postmaster.pid may belong to another process. Throws `UnreachableError` when the server
 * rejects the stored password or is not ready in time.
 */
export async function findRunning(
  place: DataPlace,
  password: string,
  timeoutMs: number,
): Promise<RunningServer | null> {
  const deadlineMs = performance.now() + timeoutMs;
  for (;;) {
    const recorded = await readPostmasterPid(place.cluster);
    if (recorded === null || !isPostmaster(recorded.pid, place.cluster)) return null;
    if (recorded.port !== null && (await tryLogin(recorded.port, password, place))) {
      return { pid: recorded.pid, port: recorded.port };
    }
    if (performance.now() > deadlineMs) throw notReady(place, timeoutMs);
    await sleep(pollMs);
  }
}

/**
 * True when the server on `port` accepts our login and serves this data; false while it is not ready. Throws
 * `UnreachableError` where waiting would not help.
 */
async function tryLogin(port: number, password: string, place: DataPlace): Promise<boolean> {
  const client = new onDemand.pg.Client({
    connectionString: withSessionSettings(connectionUrl(port, password, "postgres")),
    connectionTimeoutMillis: 2_000,
    query_timeout: 2_000,
  });
  client.on("error", () => {});
  try {
    await client.connect();
    const { rows } = await client.query<{ data_directory: string }>("SHOW data_directory");
    await client.end();
    return rows[0]?.data_directory === place.cluster;
  } catch (cause) {
    if (errorCode(cause) === "28P01") {
      throw new UnreachableError(
        `The embedded PostgreSQL on 127.0.0.1:${port} refuses the password in ${join(place.base, "password")}. ` +
          `Restore the right one, or stop that server and remove ${place.base} to start with an empty database.`,
        { cause },
      );
    }
    if (errorCode(cause) === "53300") {
      throw new UnreachableError(
        `The embedded PostgreSQL on 127.0.0.1:${port} has no free connection. Stop some of the processes that use it.`,
        { cause },
      );
    }
    return false;
  }
}

/** The first and the fourth line of postmaster.pid. The server writes the port a moment after the id. */
async function readPostmasterPid(cluster: string): Promise<{ pid: number; port: number | null } | null> {
  const lines = (await readIfExists(join(cluster, "postmaster.pid")))?.split("\n") ?? [];
  const pid = Math.abs(Number(lines[0]));
  if (!(pid > 0)) return null;
  return { pid, port: Number(lines[3]) || null };
}

const isPostmaster = (pid: number, cluster: string): boolean => commandLine(pid)?.includes(` -D ${cluster} `) === true;

const notReady = (place: DataPlace, timeoutMs: number) =>
  new UnreachableError(
    `The embedded PostgreSQL is not ready after ${timeoutMs / 1000} s; it may still be recovering. ` +
      `See ${logFile(place)}. Start again to wait longer.`,
  );
