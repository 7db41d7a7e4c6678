import { randomUUID } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
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
  const file = join(base, "users", `${randomUUID()}.json`);
  await makeDirectory(join(base, "users"));
  await writeWhole(
    file,
    JSON.stringify({ pid: process.pid, identity: processIdentity(process.pid) }),
  );
  return { leave: () => rm(file, { force: true }) };
}

/** How many users are left whose process is alive. */
export async function countUsers(base: string): Promise<number> {
  let count = 0;
  await makeDirectory(join(base, "users"));
  for (const name of await readdir(join(base, "users"))) {
    const file = join(base, "users", name);
    if (name.endsWith(".json") && isAlive(await readIfThere(file))) count++;
    else await rm(file, { force: true });
  }
  return count;
}

function isAlive(content: string | null): boolean {
  try {
    const { pid, identity } = JSON.parse(content ?? "") as { pid: number; identity: string | null };
    return identity !== null && processIdentity(pid) === identity;
  } catch {
    return false;
  }
}
