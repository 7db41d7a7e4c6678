import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { commandLine } from "../../src/platform/process-table.ts";

interface Kind {
  /** Names are this, the owner's process id, and something random: `tallyhook-image-4711-a1B2c3`. */
  prefix: string;
  /** Where they are. */
  place?: string;
}

/** A new, empty directory that this process owns. */
export const makeOwnedDirectory = ({ prefix, place = tmpdir() }: Kind): Promise<string> =>
  mkdtemp(join(place, `${prefix}${process.pid}-`));

/** Removes those whose owner is gone: it was killed, or it would have removed them itself. */
export async function removeOrphanedDirectories({ prefix, place = tmpdir() }: Kind): Promise<void> {
  for (const name of await readdir(place)) {
    if (!name.startsWith(prefix)) continue;
    const [, owner] = /^(\d+)-\w+$/.exec(name.slice(prefix.length)) ?? [];
    if (owner === undefined || commandLine(Number(owner)) !== null) continue;
    // Another user's, or another run removes it at this moment: not ours to remove.
    await rm(join(place, name), { recursive: true, force: true }).catch(() => {});
  }
}
