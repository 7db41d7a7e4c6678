import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { superuser } from "./embedded-postgres-cluster.ts";
import type { Place } from "./embedded-postgres-place.ts";
import { UnreachableError } from "./errors.ts";
import { errorCode } from "./postgres-errors.ts";
import { readIfThere } from "./private-files.ts";
import { commandLine } from "./process-table.ts";
import { withSessionSettings } from "./session-settings.ts";

export interface RunningServer {
  pid: number;
  port: number;
}

export const pollMs = 20;

export const logFile = (place: Place): string => join(place.root, "server.log");

/** `sslmode`: said aloud, since a PGSSLMODE meant for another server would else be taken for this one. */
export const connectionUrl = (port: number, password: string, database: string): string =>
  `postgres://${superuser}:${password}@127.0.0.1:${port}/${database}?sslmode=disable`;

/**
 * The server that runs on this data, once it takes connections; null when none runs. The process is recognised
 * by its command line, since the id in postmaster.pid may by now be anybody's. Throws `UnreachableError` when it
 * refuses the stored password or is not ready in time.
 */
export async function findRunning(
  place: Place,
  password: string,
  timeoutMs: number,
): Promise<RunningServer | null> {
  const deadlineMs = performance.now() + timeoutMs;
  for (;;) {
    const noted = await readPostmasterPid(place.cluster);
    if (noted === null || !isPostmaster(noted.pid, place.cluster)) return null;
    if (noted.port !== null && (await tryLogin(noted.port, password, place))) {
      return { pid: noted.pid, port: noted.port };
    }
    if (performance.now() > deadlineMs) throw notReady(place, timeoutMs);
    await sleep(pollMs);
  }
}

/**
 * True when the server on `port` lets us in and serves this data; false while it is not ready. Throws
 * `UnreachableError` where waiting would not help.
 */
export async function tryLogin(port: number, password: string, place: Place): Promise<boolean> {
  const client = new pg.Client({
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
          `Bring the right one back, or stop that server and remove ${place.base} to begin anew.`,
        { cause },
      );
    }
    if (errorCode(cause) === "53300") {
      throw new UnreachableError(
        `The embedded PostgreSQL on 127.0.0.1:${port} has no connection left. End some of its users first.`,
        { cause },
      );
    }
    return false;
  }
}

/** The first and the fourth line of postmaster.pid; the port is written a moment after the id. */
export async function readPostmasterPid(
  cluster: string,
): Promise<{ pid: number; port: number | null } | null> {
  const lines = (await readIfThere(join(cluster, "postmaster.pid")))?.split("\n") ?? [];
  const pid = Math.abs(Number(lines[0]));
  if (!(pid > 0)) return null;
  return { pid, port: Number(lines[3]) || null };
}

export const isPostmaster = (pid: number, cluster: string): boolean =>
  commandLine(pid)?.includes(` -D ${cluster} `) === true;

export const notReady = (place: Place, timeoutMs: number) =>
  new UnreachableError(
    `The embedded PostgreSQL is not ready after ${timeoutMs / 1000} s; it may still be recovering. ` +
      `Look at ${logFile(place)}; starting again goes on waiting for it.`,
  );
