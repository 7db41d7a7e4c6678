import { randomBytes } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import {
  removeAbandonedPostgres,
  startEmbeddedPostgres,
} from "../../platform/embedded-postgres.ts";
import type { Log } from "../../platform/log.ts";
import { processIdentity } from "../../platform/process-table.ts";

/** A PostgreSQL server with its directory, for one run of the demo. */
export interface DemoServer {
  url: string;
  dataDir: string;
  /** Ends the server and removes all of it. */
  remove(): Promise<void>;
}

/** Holds the id of its process, so that a later run knows whose it was. */
const nameOfRun = /^demo-(\d+)-[0-9a-f]+$/;

/**
 * Starts a server in a directory of its own under `parent`. What runs left there that were killed is removed first.
 * Leaves nothing when it fails. Throws `UnreachableError`.
 */
export async function startDemoServer(parent: string, log: Pick<Log, "info">): Promise<DemoServer> {
  await removeLeftovers(parent);
  const dataDir = join(parent, `demo-${process.pid}-${randomBytes(3).toString("hex")}`);
  try {
    const server = await startEmbeddedPostgres({ dataDir, log });
    return {
      url: server.url,
      dataDir,
      remove: async () => {
        await server.remove();
        await rm(dataDir, { recursive: true, force: true });
      },
    };
  } catch (error) {
    // Why it did not start is what a person must hear, not what of it cannot be removed.
    await removeAbandoned(dataDir).catch(() => {});
    throw error;
  }
}

async function removeLeftovers(parent: string): Promise<void> {
  const names = await readdir(parent).catch(() => []);
  for (const name of names) {
    const pid = nameOfRun.exec(name)?.[1];
    if (pid === undefined || processIdentity(Number(pid)) !== null) continue;
    // What cannot be removed, such as another user's, is no reason not to run.
    await removeAbandoned(join(parent, name)).catch(() => {});
  }
}

async function removeAbandoned(dataDir: string): Promise<void> {
  const isUnused = await removeAbandonedPostgres(dataDir);
  if (isUnused) await rm(dataDir, { recursive: true, force: true });
}
