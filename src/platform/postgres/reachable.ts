import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { ConfigurationError, UnreachableError } from "../errors.ts";
import { errorCode, explainConnectionError } from "./errors.ts";
import {
  type Pooling,
  type SessionState,
  neededSettings,
  problemOfSession,
  readSessionSettings,
  withSessionSettings,
} from "./session-settings.ts";
import { transactionPooledClient } from "./transaction-pooling.ts";
import { onDemand } from "../on-demand.ts";

export interface ReachableOptions {
  /** The setting to name in the message. */
  variable?: string;
  /** Limit for everything together: name look-up, connecting, logging in, the queries. */
  timeoutMs?: number;
  /** See `DatabaseOptions`. */
  pooling?: Pooling | undefined;
}

const reachableWithinMs = 6_000;

/**
 * Proves that the database answers a query within `timeoutMs`: 6 s by default, so that a command ends within 10 s,
 * including the start of its process. Also waits that long for a server that is starting or recovering. Throws
 * `UnreachableError`, or `ConfigurationError` when the URL is wrong, the server too old, the database not in UTF8, the
 * session without the settings that it needs, or a pooler shares server connections between transactions and `pooling`
 * is not set. The message names the variable and the server, and never shows the password.
 */
export async function assertReachable(url: string, options: ReachableOptions = {}): Promise<void> {
  const { variable = "DATABASE_URL", timeoutMs = reachableWithinMs, pooling } = options;
  await withProbe({ url, variable, timeoutMs, pooling }, async (client, deadline) => {
    const { rows } = await client.query<{ version: string; encoding: string }>(
      "select current_setting('server_version_num') as version, current_setting('server_encoding') as encoding",
    );
    assertVersion(Number(rows[0]?.version), variable);
    assertEncoding(rows[0]?.encoding, variable);
    const isUnsaid = pooling === undefined;
    if (isUnsaid && (await isLentToOthers(client, createProbe({ url, variable }), deadline))) {
      throw transactionPooling(variable);
    }
    const needed = neededSettings(pooling);
    const session = await client.query<SessionState>(readSessionSettings, [Object.keys(needed)]);
    assertSession(session.rows[0], needed, variable);
  });
}

/** The settings with the connection past a pooler, and with the one through it. */
const [directVariable, pooledVariable] = ["DATABASE_DIRECT_URL", "DATABASE_URL"] as const;

/** Key of the advisory lock by which two connections know each other, before a process id. An arbitrary fixed number. */
const meetingLock = 7_255_020_000_000_000;

/**
 * Proves that `directUrl` reaches, past the pooler, the very database that `pooledUrl` reaches through it. A lock that
 * is taken on one connection must be held for the other: a standby and a restored copy have the identifiers of the
 * original, and not its locks. Throws as `assertReachable` does.
 */
export async function assertDirect(
  directUrl: string,
  pooledUrl: string,
  { timeoutMs = reachableWithinMs }: Pick<ReachableOptions, "timeoutMs"> = {},
): Promise<void> {
  await assertReachable(directUrl, { variable: directVariable, timeoutMs });
  await withProbe({ url: directUrl, variable: directVariable, timeoutMs }, async (direct) => {
    await direct.query("begin");
    const { rows } = await direct.query<{ key: string; database: string }>(
      "select $1::bigint + pg_backend_pid() as key, current_database() as database",
      [meetingLock],
    );
    await direct.query("select pg_advisory_xact_lock($1)", [rows[0]?.key]);
    const pooled = { url: pooledUrl, variable: pooledVariable, timeoutMs } as const;
    await withProbe({ ...pooled, pooling: "transaction" }, async (client) => {
      const asked = await client.query<{ is_free: boolean; database: string }>(
        "select pg_try_advisory_xact_lock($1) as is_free, current_database() as database",
        [rows[0]?.key],
      );
      if (asked.rows[0]?.is_free !== false) {
        throw otherDatabase(direct, rows[0]?.database, client, asked.rows[0]?.database);
      }
    });
  });
}

const otherDatabase = (direct: pg.Client, directName = "", pooled: pg.Client, pooledName = ""): ConfigurationError =>
  new ConfigurationError(
    `${directVariable} and ${pooledVariable} reach two databases: ${directName} on ${direct.host}:${direct.port}, and ` +
      `${pooledName} by way of ${pooled.host}:${pooled.port}. Both should reach the same database of the same server, ` +
      `the primary: ${pooledVariable} through the pooler, ${directVariable} past it.`,
  );

interface ProbeOptions {
  url: string;
  variable: string;
  timeoutMs: number;
  pooling?: Pooling | undefined;
}

/**
 * Connects, runs `work` and disconnects, all within `timeoutMs`. Waits that long for a server that is starting. Throws
 * errors as `assertReachable` does.
 */
async function withProbe(
  options: ProbeOptions,
  work: (client: pg.Client, deadline: AbortSignal) => Promise<void>,
): Promise<void> {
  const { variable, timeoutMs } = options;
  const deadline = AbortSignal.timeout(timeoutMs);
  let starting: unknown;
  for (;;) {
    const { client, socket } = createProbe(options);
    const giveUp = () => socket.destroy(new Error("no answer in time"));
    deadline.addEventListener("abort", giveUp);
    try {
      await client.connect();
      await work(client, deadline);
      await client.end();
      return;
    } catch (cause) {
      if (cause instanceof ConfigurationError || cause instanceof UnreachableError) throw cause;
      if (errorCode(cause) === "57P03") starting = cause;
      if (starting === cause && !deadline.aborted) {
        await sleep(100);
        continue;
      }
      // The time may also end while it is asked once more.
      const said = deadline.aborted ? starting : cause;
      const why = said === undefined ? noAnswer(client, timeoutMs) : explain(said, client);
      throw new UnreachableError(`${variable}: ${why}`, { cause });
    } finally {
      deadline.removeEventListener("abort", giveUp);
      socket.destroy();
    }
  }
}

/**
 * Whether a pooler between here and the server lends a server connection to one client per transaction, as PgBouncer
 * does in the modes "transaction" and "statement". Then a server process that serves a client still connected also
 * serves another one, or a busy pooler gives the client another process. A server that is reached directly reports its
 * own process id, which settles the question immediately.
 */
async function isLentToOthers(
  client: pg.Client,
  { client: other, socket }: Probe,
  deadline: AbortSignal,
): Promise<boolean> {
  const backend = await backendOf(client);
  if ((client as unknown as { processID: number }).processID === backend) return false;
  const giveUp = () => socket.destroy(new Error("no answer in time"));
  deadline.addEventListener("abort", giveUp);
  try {
    await other.connect();
    await other.query("begin");
    if ((await backendOf(other)) === backend) return true;
    // The pool has a second connection, so this does not wait for the one just taken.
    const isMoved = (await backendOf(client)) !== backend;
    await other.query("rollback");
    await other.end();
    return isMoved;
  } catch (error) {
    // What refuses every transaction, as PgBouncer does in its mode "statement", lends by less than that.
    if (errorCode(error) === "08P01" && !deadline.aborted) return true;
    throw error;
  } finally {
    deadline.removeEventListener("abort", giveUp);
    socket.destroy();
  }
}

async function backendOf(client: pg.Client): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  return rows[0]?.pid;
}

const transactionPooling = (variable: string): ConfigurationError =>
  new ConfigurationError(
    `${variable}: a pooler between here and PostgreSQL pools by transaction, and what Tallyhook keeps in a session would ` +
      (variable === directVariable
        ? "get lost there. This variable is for a connection past the pooler: name the server itself, or a pool that " +
          "pools by session (PgBouncer: pool_mode = session)."
        : `get lost. Set ${directVariable} to a URL of the same database past the pooler (docs/operations.md, "Behind a ` +
          'pooler"), or have it pool by session for this database (PgBouncer: pool_mode = session).'),
  );

/** The reports use multiranges (14); the alerts use unique indexes that treat nulls as equal (15). */
const oldestVersion = 15;

/** Throws `ConfigurationError` for a server whose `server_version_num` is too old for the migrations. */
export function assertVersion(serverVersionNum: number, variable: string): void {
  const major = Math.floor(serverVersionNum / 10_000);
  if (major >= oldestVersion) return;
  throw new ConfigurationError(
    `${variable}: the server is PostgreSQL ${major}. It should be ${oldestVersion} or later.`,
  );
}

/** Names, ids and free text may be in any script. */
function assertEncoding(encoding: string | undefined, variable: string): void {
  if (encoding === "UTF8") return;
  throw new ConfigurationError(
    `${variable}: the database is encoded in ${encoding}. It should be UTF8: make another with create database … encoding 'UTF8' template template0.`,
  );
}

/** The program's statements rely on these settings, and a pooler may drop them. */
function assertSession(
  session: SessionState | undefined,
  needed: Readonly<Record<string, string>>,
  variable: string,
): void {
  const problem = session === undefined ? null : problemOfSession(session, needed);
  if (problem !== null) throw new ConfigurationError(`${variable}: ${problem}`);
}

const explain = (error: unknown, { host, port, user, database }: pg.Client): string =>
  explainConnectionError(error, { host, port, user: user ?? "", database: database ?? "" });

const noAnswer = ({ host, port }: pg.Client, timeoutMs: number): string =>
  `${host}:${port} does not answer as PostgreSQL within ${timeoutMs / 1000} s. Check the host, the port and firewalls.`;

interface Probe {
  client: pg.Client;
  socket: Socket;
}

function createProbe({ url, variable, pooling }: Pick<ProbeOptions, "url" | "variable" | "pooling">): Probe {
  const socket = new Socket();
  // A destroyed socket may still report an error after all listeners are gone.
  socket.on("error", () => {});
  try {
    const Client = pooling === "transaction" ? transactionPooledClient() : onDemand.pg.Client;
    const client = new Client({
      connectionString: withSessionSettings(url, pooling),
      application_name: "tallyhook reachability",
      stream: () => socket,
    });
    client.on("error", () => {});
    return { client, socket };
  } catch (error) {
    // No cause: the URL parser's error holds the whole URL, and so the password.
    const { code, path } = error as NodeJS.ErrnoException;
    if (path !== undefined) {
      throw new ConfigurationError(
        `${variable}: the file ${path} named in it cannot be read (${code}). Check the path, and who may read it.`,
      );
    }
    throw new ConfigurationError(
      `${variable} is not a usable URL. It should look like postgres://user:password@host:5432/database.`,
    );
  }
}
