import { spawn } from "node:child_process";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { giveTo, runAs } from "./embedded-postgres-account.ts";
import type { Binaries } from "./embedded-postgres-binaries.ts";
import type { Place } from "./embedded-postgres-place.ts";
import { UnreachableError } from "./errors.ts";
import { makeNewDirectory } from "./private-files.ts";

/** The database role that initdb makes, and that everything logs in as. */
export const superuser = "tallyhook";

/** The children see nothing of our environment: PG… variables in it would change what they do. */
export const serverEnvironment = { PATH: "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };

/**
 * Makes the data directory unless it is there; a crash half-way leaves none. Throws `UnreachableError` with
 * initdb's own words, also when the data was made by another major version. Must run under the lock.
 */
export async function ensureCluster(
  place: Place,
  binaries: Binaries,
  password: string,
): Promise<void> {
  if (place.isInitialised) return refuseOtherVersion(place, binaries);
  const unfinished = join(place.root, "cluster.new");
  const passwordFile = join(place.root, "initdb-password");
  await rm(unfinished, { recursive: true, force: true });
  await rm(passwordFile, { force: true });
  try {
    await makeNewDirectory(unfinished, 0o700);
    await giveTo(place.account, unfinished);
    await writeFile(passwordFile, `${password}\n`, { mode: 0o600, flag: "wx" });
    await giveTo(place.account, passwordFile);
    await initdb(place, binaries.initdb, [
      `--pgdata=${unfinished}`,
      `--username=${superuser}`,
      `--pwfile=${passwordFile}`,
      "--auth=scram-sha-256",
      "--encoding=UTF8",
      // Sorts by code point, the same on every system, as JavaScript compares ids.
      "--locale=C",
      "--locale-provider=builtin",
      "--builtin-locale=C.UTF-8",
      "--no-instructions",
    ]);
    await rename(unfinished, place.cluster);
  } finally {
    await rm(passwordFile, { force: true });
  }
}

async function initdb(place: Place, program: string, args: string[]): Promise<void> {
  const child = spawn(program, args, {
    ...runAs(place.account),
    cwd: place.root,
    env: serverEnvironment,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise<number | string | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (exitCode, signal) => resolve(exitCode ?? signal));
  });
  if (code === 0) return;
  throw new UnreachableError(
    `The data directory of the embedded PostgreSQL could not be made in ${place.root}. ` +
      `Check free disk space and permissions there. initdb ended with ${code}:\n${lastLines(output)}`,
    { cause: new Error(`initdb ended with ${code}:\n${output.trim()}`) },
  );
}

/** What a program said last, indented to stand below a message. */
export const lastLines = (output: string): string =>
  output
    .trim()
    .split("\n")
    .slice(-6)
    .map((line) => `    ${line}`)
    .join("\n");

async function refuseOtherVersion(place: Place, { majorVersion }: Binaries): Promise<void> {
  const made = (await readFile(join(place.cluster, "PG_VERSION"), "utf8")).trim();
  if (made === majorVersion) return;
  throw new UnreachableError(
    `The embedded PostgreSQL is version ${majorVersion}, and the data in ${place.cluster} was made by version ${made}. ` +
      `Dump it with version ${made} and load it again, or remove ${place.base} to begin with an empty database.`,
  );
}
