import { chmod, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stopAbandonedPostgres } from "../../src/platform/embedded-postgres.ts";

const prefix = "tallyhook-test-data-";
/** No run takes so long; what is younger may belong to a run that has just begun. */
const abandonedAfterMs = 3_600_000;

/** An empty data directory that every user may pass through, as a usual checkout is. */
export async function makeDataDir(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), prefix));
  await chmod(directory, 0o755);
  return directory;
}

/** Ends and removes what runs that were killed left behind. */
export async function removeAbandonedServers(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    if (!name.startsWith(prefix)) continue;
    const directory = join(tmpdir(), name);
    // Null: another run has just removed it.
    const found = await stat(directory).catch(() => null);
    if (found === null || Date.now() - found.mtimeMs < abandonedAfterMs) continue;
    // Another user's, or in use after all: not ours to remove.
    const isAbandoned = await stopAbandonedPostgres(directory).catch(() => false);
    if (isAbandoned) await rm(directory, { recursive: true, force: true });
  }
}
