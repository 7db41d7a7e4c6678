import { rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { makeDirectory, readIfExists, writeAtomically } from "../../platform/files.ts";

/** The process that `start` runs in a folder. */
const runningHere = z.object({ pid: z.int().positive(), dashboard: z.string().max(300) });
type RunningHere = z.infer<typeof runningHere>;

const fileIn = (dataDir: string): string => join(dataDir, "running.json");

/** Notes this process, for a second start to name. Returns what takes the note back. */
export async function noteRunning(dataDir: string, dashboard: string): Promise<() => Promise<void>> {
  await makeDirectory(dataDir);
  await writeAtomically(fileIn(dataDir), JSON.stringify({ pid: process.pid, dashboard }));
  return () => rm(fileIn(dataDir), { force: true });
}

/** The other process that noted itself and still exists. It is named in messages only: a number may serve twice. */
export async function findRunning(dataDir: string): Promise<RunningHere | null> {
  try {
    const found = runningHere.parse(JSON.parse((await readIfExists(fileIn(dataDir))) ?? "null"));
    if (found.pid === process.pid) return null;
    process.kill(found.pid, 0);
    return found;
  } catch {
    return null;
  }
}
