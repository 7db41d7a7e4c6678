import type { EventEmitter } from "node:events";
import { Socket } from "node:net";
import type { Knex } from "knex";
import type pg from "pg";
import type { Pool } from "pg";
import type { Log } from "../log.ts";
import { onDemand } from "../on-demand.ts";
import { type OwnSettings, type Pooling, setInSession, withSessionSettings } from "./session-settings.ts";
import { transactionPooledClient } from "./transaction-pooling.ts";

const connectTimeoutMs = 10_000;
const keepAliveDelayMs = 10_000;

export interface DatabaseOptions extends Pick<OwnSettings, "statementTimeoutMs"> {
  url: string;
  /** Every caller of a pooled URL must set this. */
  pooling?: Pooling | undefined;
  poolMax: number;
  /** Shown in `pg_stat_activity`. */
  applicationName: string;
  /**
   * When a statement's connection receives nothing for this time, both are abandoned. Must exceed the time that any
   * statement needs to its first row. For long-running processes; unlimited by default.
   */
  receiveTimeoutMs?: number;
  log?: Log;
}

/**
 * A Knex with its own pool, which opens connections when they are needed. `int8` and `numeric` are returned as strings.
 * Does not connect yet. Close with `db.destroy()`.
 */
export function createDatabase(options: DatabaseOptions): Knex {
  const { url, pooling, poolMax, applicationName, receiveTimeoutMs, statementTimeoutMs, log } = options;
  const own: OwnSettings = statementTimeoutMs === undefined ? {} : { statementTimeoutMs };
  const watch = receiveTimeoutMs === undefined ? undefined : closeUnanswered(receiveTimeoutMs, disposeOfLater);
  const db = onDemand.knex({
    client: "pg",
    connection: {
      connectionString: withSessionSettings(url, pooling, own),
      application_name: applicationName,
      connectionTimeoutMillis: connectTimeoutMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveDelayMs,
    },
    // Knex handles errors of idle clients itself: the connection is dropped from the pool.
    pool: {
      min: 0,
      max: poolMax,
      afterCreate(client: WatchedClient, done: (error: null, client: WatchedClient) => void) {
        watch?.(client);
        onReadOnly(client, (reason) => disposeOfLater([client], reason));
        done(null, client);
      },
    },
    acquireConnectionTimeout: connectTimeoutMs,
    log: knexLog(log),
  });
  if (pooling === "transaction") {
    // Knex reads the class of its clients from here.
    (db.client as { driver: Pick<typeof pg, "Client"> }).driver = {
      Client: transactionPooledClient(own),
    };
  }
  return db;
}

/** The untyped parts of a pg client. Knex never lends out a client that has a reason in `__knex__disposed`. */
interface WatchedClient {
  connection: { stream: Socket } & Pick<EventEmitter, "on">;
  readyForQuery: boolean;
  __knex__disposed?: Error;
}

/**
 * After a failover without a disconnect (a lost machine, a moved address), the operating system keeps sending to the
 * old server for a quarter of an hour. A statement that waits too long drops its connection; `distrust` then handles
 * the pool's others, each of which would cost the same wait again. An idle connection may be silent: it may hold a
 * lock.
 */
function closeUnanswered(
  receiveTimeoutMs: number,
  distrust: (others: readonly WatchedClient[], reason: Error) => void,
): (client: WatchedClient) => void {
  const clients = new Set<WatchedClient>();
  return (client) => {
    const { stream } = client.connection;
    clients.add(client);
    stream.once("close", () => clients.delete(client));
    stream.setTimeout(receiveTimeoutMs);
    // Not as the argument of setTimeout, which listens once: an idle connection would use it up.
    stream.on("timeout", () => {
      if (client.readyForQuery) return;
      const reason = new Error(`the database connection received nothing for ${receiveTimeoutMs} ms`);
      distrust([...clients], reason);
      stream.destroy(reason);
    });
  };
}

/**
 * A server that refuses a write because it only reads is a standby, or was the primary. Its connections work and would
 * be kept, while the address may lead to the new primary.
 */
function onReadOnly(client: WatchedClient, giveUp: (reason: Error) => void): void {
  client.connection.on("errorMessage", ({ code }: { code?: string }) => {
    if (code === "25006") giveUp(new Error("the database server is read-only"));
  });
}

/** A connection in use may hold a lock; it is dropped when it is returned. */
function disposeOfLater(clients: readonly WatchedClient[], reason: Error): void {
  for (const client of clients) client.__knex__disposed = reason;
}

function destroyAll(clients: readonly WatchedClient[], reason: Error): void {
  for (const { connection } of clients) connection.stream.destroy(reason);
}

export interface PoolOptions extends Pick<OwnSettings, "searchPath" | "statementTimeoutMs"> {
  url: string;
  /** See `DatabaseOptions`. */
  pooling?: Pooling | undefined;
  max: number;
  applicationName: string;
  /** Saves a flush of the WAL for each commit. A crash of the server may then lose the last ones. */
  mayLoseCommits?: true;
  /** The limit for opening a connection, or for waiting until a busy pool has a free one. */
  connectTimeoutMs?: number;
  /** The client stops waiting after this time, even when the server does not answer at all. */
  queryTimeoutMs?: number;
  idleTimeoutMs?: number;
  /** See `DatabaseOptions`, but closes every connection of the pool. */
  receiveTimeoutMs?: number;
  log?: Log;
}

/**
 * A bare pg pool, for the hot path and for BullMQ. Its commits survive a crash unless `mayLoseCommits`. Handles errors
 * of idle and of checked-out clients (the pool replaces them), so that a lost server never ends the process. Close with
 * `pool.end()`.
 */
export function createPool(options: PoolOptions): pg.Pool {
  const { log, pooling, searchPath, statementTimeoutMs } = options;
  const own: OwnSettings = {
    ...(searchPath === undefined ? {} : { searchPath }),
    ...(statementTimeoutMs === undefined ? {} : { statementTimeoutMs }),
    commits: options.mayLoseCommits === true ? "may be lost" : "durable",
  };
  const pool = new onDemand.pg.Pool({
    connectionString: withSessionSettings(options.url, pooling),
    max: options.max,
    application_name: options.applicationName,
    connectionTimeoutMillis: options.connectTimeoutMs ?? connectTimeoutMs,
    idleTimeoutMillis: options.idleTimeoutMs ?? 30_000,
    keepAlive: true,
    // Otherwise the first keep-alive probe comes after two hours, and a connection that only listens would miss
    // everything until then.
    keepAliveInitialDelayMillis: keepAliveDelayMs,
    ...(pooling === "transaction"
      ? { Client: transactionPooledClient(own) }
      : {
          // oxlint-disable-next-line typescript/no-misused-promises -- the pool awaits it before it lends the connection
          onConnect: (client: pg.ClientBase) => applyOwnSettings(client, own),
        }),
    ...(options.queryTimeoutMs === undefined ? {} : { query_timeout: options.queryTimeoutMs }),
  });
  const onError = (err: Error) => log?.warn({ err }, "a database connection was lost");
  pool.on("error", onError);
  // Between connect() and release() the pool does not listen; an error event without a listener is fatal.
  pool.on("connect", (client) => client.on("error", () => {}));
  pool.on("connect", (client) => {
    // The pool drops such a client when it is released, so nothing is cut off.
    onReadOnly(client as unknown as WatchedClient, () => {
      (client as unknown as { _poolUseCount: number })._poolUseCount = Number.POSITIVE_INFINITY;
    });
  });
  if (options.receiveTimeoutMs !== undefined) {
    const watch = closeUnanswered(options.receiveTimeoutMs, destroyAll);
    pool.on("connect", (client) => watch(client as unknown as WatchedClient));
  }
  return pool;
}

/**
 * Sent as a statement, since a pooler's start-up message takes neither a statement time-out nor a search path. A commit
 * survives a crash under any setting of server, database or role, unless the pool allows losing it.
 */
const applyOwnSettings = async (client: pg.ClientBase, own: OwnSettings): Promise<void> =>
  void (await client.query(setInSession(own)));

const knexMessage = "Knex logged a message";

/** Without a log of ours, Knex would write to standard output, where `--json` prints. */
function knexLog(log: Log | undefined): Knex.Logger {
  return {
    warn: (message: unknown) => log?.warn({ knex: message }, knexMessage),
    error: (message: unknown) => log?.error({ knex: message }, knexMessage),
    deprecate: (message: unknown) => log?.warn({ knex: message }, knexMessage),
    debug: (message: unknown) => log?.debug({ knex: message }, knexMessage),
  };
}

export interface PoolUse {
  used: number;
  idle: number;
  /** Number of callers waiting for a connection. */
  waiting: number;
  most: number;
}

export function useOfKnex(db: Knex): PoolUse {
  const { pool } = db.client as { pool?: TarnPool };
  // A pool that was destroyed is gone.
  if (pool === undefined) return { used: 0, idle: 0, waiting: 0, most: 0 };
  return {
    used: pool.numUsed(),
    idle: pool.numFree(),
    waiting: pool.numPendingAcquires(),
    most: pool.max,
  };
}

/** The part of knex's pool that knex's types leave out. */
interface TarnPool {
  max: number;
  numUsed(): number;
  numFree(): number;
  numPendingAcquires(): number;
}

export function useOfPool(pool: Pool): PoolUse {
  const { totalCount, idleCount, waitingCount, options } = pool;
  return {
    used: totalCount - idleCount,
    idle: idleCount,
    waiting: waitingCount,
    most: options.max,
  };
}
