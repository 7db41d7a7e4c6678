import { randomBytes } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../log.ts";
import { processIdentity } from "../process-table.ts";
import { removeAbandonedPostgres, startEmbeddedPostgres } from "./embedded-postgres.ts";
import type { ServerSettings } from "./server.ts";

/** A PostgreSQL server and its directory, for one run of a command. */
export interface TemporaryServer {
  url: string;
  dataDir: string;
  /** Stops the server and removes its files. Idempotent. */
  remove(): Promise<void>;
}

export interface TemporaryServerOptions {
  /** The directory in which its own is made. */
  parent: string;
  /** The command's kind: letters. Names of its directories begin with it. */
  kind: string;
  log: Pick<Log, "info">;
  settings?: ServerSettings;
}

/**
 * Starts a server in its own directory, whose data only its user can read. First removes the directories of runs of the
 * same kind that were killed. Leaves nothing behind if it fails. Throws `UnreachableError`.
 */
export async function startTemporaryServer({
  parent,
  kind,
  log,
  settings = {},
}: TemporaryServerOptions): Promise<TemporaryServer> {
  await removeLeftovers(parent, kind);
  const dataDir = join(parent, `${kind}-${process.pid}-${randomBytes(3).toString("hex")}`);
  try {
    const server = await startEmbeddedPostgres({ dataDir, log, settings });
    const remove = async () => {
      await server.remove();
      await rm(dataDir, { recursive: true, force: true });
    };
    let removed: Promise<void> | undefined;
    return { url: server.url, dataDir, remove: () => (removed ??= remove()) };
  } catch (error) {
    // The person must see why the start failed, not why the cleanup failed.
    await removeAbandoned(dataDir).catch(() => {});
    throw error;
  }
}

async function removeLeftovers(parent: string, kind: string): Promise<void> {
  // The name has the id of the run's process, so that a later run can check whether that process is alive.
  const directoryName = new RegExp(`^${kind}-(\\d+)-[0-9a-f]+$`);
  const names = await readdir(parent).catch(() => []);
  for (const name of names) {
    const pid = directoryName.exec(name)?.[1];
    if (pid === undefined || processIdentity(Number(pid)) !== null) continue;
    // A directory that cannot be removed, such as another user's, does not prevent the run.
    await removeAbandoned(join(parent, name)).catch(() => {});
  }
}

async function removeAbandoned(dataDir: string): Promise<void> {
  const isUnused = await removeAbandonedPostgres(dataDir);
  if (isUnused) await rm(dataDir, { recursive: true, force: true });
}
