import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import knex from "knex";
import type { Knex } from "knex";
import pg from "pg";
import { makeCommitsDurable } from "./commit-durability.ts";
import { ConfigurationError, UnreachableError } from "./errors.ts";
import type { Log } from "./log.ts";
import { errorCode, explainConnectionError } from "./postgres-errors.ts";
import {
  neededSettings,
  problemOfSession,
  readSessionSettings,
  withSessionSettings,
} from "./session-settings.ts";
import type { SessionState } from "./session-settings.ts";

const connectTimeoutMs = 10_000;
const keepAliveDelayMs = 10_000;

export interface DatabaseOptions {
  url: string;
  poolMax: number;
  /** Shown in `pg_stat_activity`. */
  applicationName: string;
  log?: Log;
}

/**
 * A Knex with its own pool, which opens connections when they are needed. `int8` and `numeric` come back as
 * strings. Does not connect yet. Close with `db.destroy()`.
 */
export function createDatabase({ url, poolMax, applicationName, log }: DatabaseOptions): Knex {
  return knex({
    client: "pg",
    connection: {
      connectionString: withSessionSettings(url),
      application_name: applicationName,
      connectionTimeoutMillis: connectTimeoutMs,
      keepAlive: true,
    },
    // Knex handles errors of idle clients itself: the connection is dropped from the pool.
    pool: { min: 0, max: poolMax },
    acquireConnectionTimeout: connectTimeoutMs,
    log: knexLog(log),
  });
}

export interface PoolOptions {
  url: string;
  max: number;
  applicationName: string;
  /** Schema in which unqualified names are looked up: letters and underscores. */
  searchPath?: string;
  /** A crash of the server may take the last commits: each is faster by a flush of the log. For what can be made anew. */
  mayLoseCommits?: true;
  /** The server gives up a statement after this time (57014). */
  statementTimeoutMs?: number;
  /** Until a new connection is ready, or a busy pool has a free one. */
  connectTimeoutMs?: number;
  /** The client gives up waiting after this time, also when the server no longer answers at all. */
  queryTimeoutMs?: number;
  idleTimeoutMs?: number;
  log?: Log;
}

/**
 * A bare pg pool, for the hot path. What its connections commit outlives a crash, unless told. Errors of idle and of
 * checked-out clients are handled (the pool replaces them), so that a server that goes away never ends the process. Close
 * with `pool.end()`.
 */
export function createPool(options: PoolOptions): pg.Pool {
  const { log } = options;
  const pool = new pg.Pool({
    connectionString: withSessionSettings(options.url, ownSettings(options)),
    max: options.max,
    application_name: options.applicationName,
    connectionTimeoutMillis: options.connectTimeoutMs ?? connectTimeoutMs,
    idleTimeoutMillis: options.idleTimeoutMs ?? 30_000,
    keepAlive: true,
    // Without it the first probe comes after two hours; a connection that only listens would be deaf for so long.
    keepAliveInitialDelayMillis: keepAliveDelayMs,
    // oxlint-disable-next-line typescript/no-misused-promises -- the pool awaits it before it lends the connection
    ...(options.mayLoseCommits === true ? {} : { onConnect: makeCommitsDurable }),
    ...(options.statementTimeoutMs === undefined
      ? {}
      : { statement_timeout: options.statementTimeoutMs }),
    ...(options.queryTimeoutMs === undefined ? {} : { query_timeout: options.queryTimeoutMs }),
  });
  const onError = (err: Error) => log?.warn({ err }, "a database connection was lost");
  pool.on("error", onError);
  // Between connect() and release() the pool does not listen; an error event without a listener is fatal.
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}

const ownSettings = ({ searchPath, mayLoseCommits }: PoolOptions): Record<string, string> => ({
  ...(searchPath === undefined ? {} : { search_path: searchPath }),
  ...(mayLoseCommits === true ? { synchronous_commit: "off" } : {}),
});

/** Without a log of ours Knex would write to standard output, where `--json` prints. */
function knexLog(log: Log | undefined): Knex.Logger {
  return {
    warn: (message: unknown) => log?.warn({ knex: message }, "knex"),
    error: (message: unknown) => log?.error({ knex: message }, "knex"),
    deprecate: (message: unknown) => log?.warn({ knex: message }, "knex"),
    debug: (message: unknown) => log?.debug({ knex: message }, "knex"),
  };
}

export interface ReachableOptions {
  /** The setting to blame in the message. */
  variable?: string;
  /** For everything together: name look-up, connecting, logging in, one query. */
  timeoutMs?: number;
}

/**
 * Proves that the database answers a query, within `timeoutMs`: 6 s unless told, so that with the start of the
 * process a command ends within 10 s. A server that is starting or recovering is waited for so long. Throws
 * `UnreachableError`, or `ConfigurationError` where the URL itself is wrong, the server too old, the database in
 * another encoding than UTF8, or the session without the settings that a connection brings; the message names the variable and the place, and never shows the password.
 */
export async function assertReachable(url: string, options: ReachableOptions = {}): Promise<void> {
  const { variable = "DATABASE_URL", timeoutMs = 6_000 } = options;
  const deadline = AbortSignal.timeout(timeoutMs);
  for (;;) {
    const { client, socket } = createProbe(url, variable);
    const giveUp = () => socket.destroy(new Error("no answer in time"));
    deadline.addEventListener("abort", giveUp);
    try {
      await client.connect();
      const { rows } = await client.query<{ version: string; encoding: string }>(
        "select current_setting('server_version_num') as version, current_setting('server_encoding') as encoding",
      );
      const session = await client.query<SessionState>(readSessionSettings, [
        Object.keys(neededSettings),
      ]);
      await client.end();
      assertVersion(Number(rows[0]?.version), variable);
      assertEncoding(rows[0]?.encoding, variable);
      assertSession(session.rows[0], variable);
      return;
    } catch (cause) {
      if (cause instanceof ConfigurationError) throw cause;
      const isStarting = errorCode(cause) === "57P03";
      if (isStarting && !deadline.aborted) {
        await sleep(100);
        continue;
      }
      const why =
        deadline.aborted && !isStarting ? silence(client, timeoutMs) : explain(cause, client);
      throw new UnreachableError(`${variable}: ${why}`, { cause });
    } finally {
      deadline.removeEventListener("abort", giveUp);
      socket.destroy();
    }
  }
}

/** The reports use multiranges (14), the alerts unique indexes to which nulls are equal (15). */
const oldestVersion = 15;

/** Throws `ConfigurationError` for a server whose `server_version_num` is too old for the migrations. */
export function assertVersion(serverVersionNum: number, variable: string): void {
  const major = Math.floor(serverVersionNum / 10_000);
  if (major >= oldestVersion) return;
  throw new ConfigurationError(
    `${variable}: the server is PostgreSQL ${major}. It should be ${oldestVersion} or later.`,
  );
}

/** Names, ids and what people write come in any script. */
function assertEncoding(encoding: string | undefined, variable: string): void {
  if (encoding === "UTF8") return;
  throw new ConfigurationError(
    `${variable}: the database is encoded in ${encoding}. It should be UTF8: make another with create database … encoding 'UTF8' template template0.`,
  );
}

/** What the program's statements rely on, and what a pooler may drop. */
function assertSession(session: SessionState | undefined, variable: string): void {
  const problem = session === undefined ? null : problemOfSession(session);
  if (problem !== null) throw new ConfigurationError(`${variable}: ${problem}`);
}

const explain = (error: unknown, { host, port, user, database }: pg.Client): string =>
  explainConnectionError(error, { host, port, user: user ?? "", database: database ?? "" });

const silence = ({ host, port }: pg.Client, timeoutMs: number): string =>
  `${host}:${port} does not answer as PostgreSQL within ${timeoutMs / 1000} s. Check the host, the port and firewalls.`;

function createProbe(url: string, variable: string): { client: pg.Client; socket: Socket } {
  const socket = new Socket();
  // A destroyed socket may still report an error after everybody has stopped listening.
  socket.on("error", () => {});
  try {
    const client = new pg.Client({
      connectionString: withSessionSettings(url),
      application_name: "tallyhook reachability",
      stream: () => socket,
    });
    client.on("error", () => {});
    return { client, socket };
  } catch (error) {
    // No cause: the error of the URL parser holds the whole URL, and so the password.
    const { code, path } = error as NodeJS.ErrnoException;
    if (path !== undefined) {
      throw new ConfigurationError(
        `${variable}: the file ${path} that it names cannot be read (${code}). Check the path, and who may read it.`,
      );
    }
    throw new ConfigurationError(
      `${variable} is not a URL that can be used. It should look like postgres://user:password@host:5432/database.`,
    );
  }
}
