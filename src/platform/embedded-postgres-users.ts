import { randomUUID } from "node:crypto";
import { lstat, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { UnreachableError } from "./errors.ts";
import { makeDirectory, readIfThere, writeWhole } from "./private-files.ts";
import { processIdentity } from "./process-table.ts";

/**
 * Who uses a server that several processes share: one small file each in `<base>/users`. A file whose process
 * has ended, however it ended, counts for nothing and is swept. All of it must run under the lock of `base`.
 */
export interface Registration {
  leave(): Promise<void>;
}

export async function register(base: string): Promise<Registration> {
  const file = join(await usersDirectory(base), `${randomUUID()}.json`);
  await writeWhole(
    file,
    JSON.stringify({ pid: process.pid, identity: processIdentity(process.pid) }),
  );
  return { leave: () => rm(file, { force: true }) };
}

/** How many users are left whose process is alive. */
export async function countUsers(base: string): Promise<number> {
  let count = 0;
  const directory = await usersDirectory(base);
  for (const name of await readdir(directory)) {
    const file = join(directory, name);
    if (name.endsWith(".json") && isAlive(await readIfThere(file))) count++;
    else await rm(file, { force: true });
  }
  return count;
}

/** What stands in it is swept, so it must not be a link to another directory. */
async function usersDirectory(base: string): Promise<string> {
  const directory = join(base, "users");
  await makeDirectory(directory);
  if ((await lstat(directory)).isDirectory()) return directory;
  throw new UnreachableError(
    `${directory} is a link, and Tallyhook did not make it. Find out who did, and remove it.`,
  );
}

function isAlive(content: string | null): boolean {
  try {
    const { pid, identity } = JSON.parse(content ?? "") as { pid: number; identity: string | null };
    return identity !== null && processIdentity(pid) === identity;
  } catch {
    return false;
  }
}
