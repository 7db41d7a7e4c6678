import { appendFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startEmbeddedPostgres } from "../../src/platform/embedded/embedded-postgres.ts";
import { createLog } from "../../src/platform/log.ts";
import { isRecoveryConflict } from "../../src/platform/postgres/standby.ts";
import { commandLine } from "../../src/platform/process-table.ts";
import { eventually } from "./eventually.ts";
import { type OwnServer, copyServer, startOwnServer } from "./own-server.ts";
import { signalIfThere, signalTree } from "./process-tree.ts";
import { withServer } from "./server-commands.ts";

export interface Standby {
  /** The primary's database as the standby has it. The same after `promote`. */
  readonly url: string;
  /** Resolves when it has replayed all that the primary has written until now. */
  caughtUp(): Promise<void>;
  /** Received WAL is no longer replayed, until `resumeReplay`. */
  pauseReplay(): Promise<void>;
  resumeReplay(): Promise<void>;
  /** Stops all its processes: it receives no more from the primary. */
  freeze(): void;
  thaw(): void;
  /** It receives no more from the primary, permanently; returns when that has ended. */
  disconnect(): Promise<void>;
  /** Makes it a primary, whose commits then wait for no standby. */
  promote(): Promise<void>;
  /** Stops it and removes its data. Idempotent. */
  destroy(): Promise<void>;
}

export interface ReplicatedServer {
  primary: OwnServer;
  standby: Standby;
  destroy(): Promise<void>;
}

export interface ReplicationOptions {
  /** A commit on the primary waits until the standby has it on disk. */
  isSynchronous?: boolean;
  /** Settings of both servers. */
  settings?: Record<string, string>;
  ofStandby?: Record<string, string>;
}

const standbyName = "standby";

/**
 * A primary with a migrated database, and a physical standby that streams from it. The embedded package has no
 * pg_basebackup: the standby's data are a copy of the stopped primary's.
 */
export async function startReplicatedServer(options: ReplicationOptions = {}): Promise<ReplicatedServer> {
  const { isSynchronous = false, ofStandby = {} } = options;
  // A standby refuses to start with fewer WAL senders than its primary has.
  const settings = { wal_level: "replica", max_wal_senders: "4", ...options.settings };
  const primary = await startOwnServer(settings);
  try {
    await primary.stop();
    const dataDir = await copyOf(primary);
    await primary.restart();
    const standby = await startStandby(primary, dataDir, { ...settings, ...ofStandby });
    if (isSynchronous) await waitForStandby(primary.url);
    return {
      primary,
      standby,
      async destroy() {
        await standby.destroy();
        await primary.destroy();
      },
    };
  } catch (error) {
    await primary.destroy();
    throw error;
  }
}

/** A data directory that follows the primary. */
async function copyOf({ dataDir, url }: OwnServer): Promise<string> {
  const copy = await copyServer(dataDir);
  const { hostname, port, username, password } = new URL(url);
  const cluster = join(copy, "postgres", "cluster");
  await appendFile(
    join(cluster, "postgresql.auto.conf"),
    `primary_conninfo = 'host=${hostname} port=${port} user=${username} password=${password} ` +
      `application_name=${standbyName}'\n`,
  );
  await writeFile(join(cluster, "standby.signal"), "");
  return copy;
}

async function startStandby(primary: OwnServer, dataDir: string, settings: Record<string, string>): Promise<Standby> {
  const log = createLog({ level: "silent", name: "test" });
  const server = await startEmbeddedPostgres({ dataDir, log, settings });
  const { url } = server;
  // The server is no child of ours and would outlive a test run that is killed.
  const killWithTests = (): void => void signalIfThere(server.pid, "SIGQUIT");
  process.once("exit", killWithTests);
  /** Repeats statements that the replay ended: even the statement that resumes it may block it. */
  async function run(statement: string, values: unknown[] = []): Promise<unknown[]> {
    for (;;) {
      try {
        return await withServer(url, async (client) => (await client.query(statement, values)).rows);
      } catch (error) {
        if (!isRecoveryConflict(error)) throw error;
      }
    }
  }
  return {
    url,
    async caughtUp() {
      const written = await withServer(primary.url, async (client) => {
        const { rows } = await client.query<{ at: string }>("select pg_current_wal_lsn() as at");
        return rows[0]?.at;
      });
      await eventually("the standby has caught up", async () => {
        const rows = await run("select where pg_last_wal_replay_lsn() >= $1::pg_lsn", [written]);
        return rows.length > 0;
      });
    },
    async pauseReplay() {
      await run("select pg_wal_replay_pause()");
      await eventually("the replay stands still", async () => {
        const rows = await run("select where pg_get_wal_replay_pause_state() = 'paused'");
        return rows.length > 0;
      });
    },
    async resumeReplay() {
      await run("select pg_wal_replay_resume()");
    },
    freeze: () => signalTree(server.pid, "SIGSTOP"),
    thaw: () => signalTree(server.pid, "SIGCONT"),
    async disconnect() {
      await run("alter system set primary_conninfo = ''");
      await run("select pg_reload_conf()");
      await eventually("nothing is received any more", async () => {
        const rows = await run("select from pg_stat_wal_receiver");
        return rows.length === 0;
      });
    },
    async promote() {
      await run("select pg_promote()");
    },
    async destroy() {
      if (commandLine(server.pid) !== null) signalTree(server.pid, "SIGCONT");
      await server.remove();
      await rm(dataDir, { recursive: true, force: true });
      process.removeListener("exit", killWithTests);
    },
  };
}

/** Set only on the primary, after the copy: the standby, once promoted, waits for no other. */
export async function waitForStandby(url: string): Promise<void> {
  await withServer(url, async (client) => {
    await client.query(`alter system set synchronous_standby_names = '${standbyName}'`);
    await client.query("select pg_reload_conf()");
    await eventually("the standby is synchronous", async () => {
      const { rows } = await client.query(
        "select from pg_stat_replication where sync_state = 'sync' and state = 'streaming'",
      );
      return rows.length > 0;
    });
  });
}
