import { chmod, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** An empty data directory that every user may pass through, as a usual checkout is. */
export async function makeDataDir(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "tallyhook-data-"));
  await chmod(directory, 0o755);
  return directory;
}
