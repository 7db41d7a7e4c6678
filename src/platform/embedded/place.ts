import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { chmod, lchown, lstat, mkdir, realpath, stat } from "node:fs/promises";
import { userInfo } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { UnreachableError } from "../errors.ts";
import { exists, makeDirectory, readIfExists, writeAtomically } from "../files.ts";

export interface DataPlace {
  /** `<data directory>/postgres`: the password, the list of users, and the location of the rest. */
  base: string;
  /** Holds the data, the binaries and the server's log; the same as `base` where the server's user can read it. */
  root: string;
  /** PGDATA. */
  cluster: string;
  account: ServerUser;
  /** Whether `cluster` has been created. */
  isInitialised: boolean;
}

/**
 * Where data goes when root starts Tallyhook in a directory that no other user can enter (a checkout under /root). Not
 * under /tmp or /var/tmp, which the system empties.
 */
const outsideRoot = "/var/lib/tallyhook";

/** Creates `<data directory>/postgres` and returns its real path. */
export async function prepareBase(dataDir: string): Promise<string> {
  const named = resolve(dataDir, "postgres");
  await makeDirectory(resolve(dataDir));
  await makeDirectory(named);
  const base = await realpath(named);
  const { uid } = await stat(base);
  refuseForeign(uid, base);
  // With any umask, the server's user must be able to pass through. Secret files in it have their own mode.
  if (uid === process.getuid?.()) await chmod(base, 0o755);
  return base;
}

/**
 * Finds the server's files, or chooses a place for them and records it in `<base>/location`, so that every later start
 * finds them. Must run under the lock of `base`.
 */
export async function findPlace(base: string): Promise<DataPlace> {
  const recorded = await readIfExists(join(base, "location"));
  const root = recorded === null ? base : recorded.trim();
  if (recorded !== null && !(await exists(root))) {
    throw new UnreachableError(
      `The data of the embedded PostgreSQL should be in ${root}, as ${join(base, "location")} records, but that ` +
        `directory does not exist. Restore it, or remove ${base} to start with an empty database.`,
    );
  }
  if (recorded !== null) await refuseForeignPlace(base, root);
  const cluster = join(root, "cluster");
  const isInitialised = await exists(cluster);
  const account = await (isInitialised ? ownerOf(cluster) : unprivilegedAccount(base));
  if (await canRead(account, root)) {
    if (!isInitialised) refuseShellCharacters(root);
    return { base, root, cluster, account, isInitialised };
  }
  if (isInitialised || recorded !== null) {
    throw new UnreachableError(
      `The user ${account?.name} that the embedded PostgreSQL runs as can no longer read ${root}. ` +
        "Allow it to enter every directory above, or move the project back to where it was.",
    );
  }
  const elsewhere = await makeOutside(base, account);
  return { base, root: elsewhere, cluster: join(elsewhere, "cluster"), account, isInitialised };
}

/** The owner of `base` can record any directory, which root would then use and finally delete. */
async function refuseForeignPlace(base: string, root: string): Promise<void> {
  const found = await lstat(root);
  const isOurs = dirname(root) === outsideRoot && found.isDirectory() && found.uid === 0;
  if (isOurs || process.getuid?.() !== 0) return;
  throw new UnreachableError(
    `${join(base, "location")} names ${root}, which is not a directory that Tallyhook made in ${outsideRoot}. ` +
      `Find out who wrote that, then remove ${base} to start with an empty database.`,
  );
}

/** initdb passes its own path to a shell, in double quotes. */
function refuseShellCharacters(root: string): void {
  if (!/["$`]/.test(root)) return;
  throw new UnreachableError(
    `The embedded PostgreSQL cannot be made in ${root}: its path contains one of " $ \`. ` +
      "Set TALLYHOOK_DATA_DIR to another directory.",
  );
}

async function makeOutside(base: string, account: ServerUser): Promise<string> {
  const project = basename(dirname(dirname(base))).replace(/[^\w.-]/g, "_");
  const root = join(outsideRoot, `${project}-${randomBytes(6).toString("hex")}`);
  const advice =
    `PostgreSQL cannot run as root, and the user ${account?.name} cannot read ${base}. ` +
    "Set TALLYHOOK_DATA_DIR to a directory that every user can enter, or set DATABASE_URL.";
  try {
    await mkdir(outsideRoot, { recursive: true, mode: 0o755 });
    await mkdir(root, { mode: 0o755 });
    await chmod(root, 0o755);
  } catch (cause) {
    throw new UnreachableError(`${advice} (${outsideRoot} is not writable either.)`, { cause });
  }
  if (!(await canRead(account, root))) throw new UnreachableError(advice);
  await writeAtomically(join(base, "location"), `${root}\n`);
  return root;
}

/** The server's password, generated once and kept next to the data with mode 600. */
export async function ensurePassword({ base, cluster, isInitialised }: DataPlace): Promise<string> {
  const path = join(base, "password");
  const stored = await readIfExists(path);
  if (stored !== null) return stored.trim();
  if (isInitialised) {
    throw new UnreachableError(
      `The password of the embedded PostgreSQL is missing (${path}). Restore it, ` +
        `or remove ${base} and ${cluster} to start with an empty database.`,
    );
  }
  const password = randomBytes(24).toString("base64url");
  await writeAtomically(path, `${password}\n`);
  return password;
}

/** The system user that the server runs as. `null` means our own: only root has to switch to another. */
export type ServerUser = { uid: number; gid: number; name: string } | null;

/** PostgreSQL refuses to run as root. These users exist on most systems, so none has to be created. */
const candidates = ["postgres", "nobody", "daemon"];

/** The owner of existing data stays the same, also when root starts a user's server. */
async function ownerOf(cluster: string): Promise<ServerUser> {
  const { uid, gid } = await stat(cluster);
  if (uid === process.getuid?.()) return null;
  if (process.getuid?.() === 0) return { uid, gid, name: nameOf(uid) };
  throw belongsTo(uid, cluster);
}

/**
 * The owner of the data to be created in `base`: ourselves; for root, the user who owns the directory, or else an
 * existing user meant for such purposes.
 */
async function unprivilegedAccount(base: string): Promise<ServerUser> {
  const { uid, gid } = await stat(base);
  if (process.getuid?.() !== 0) {
    refuseForeign(uid, base);
    refuseNameless();
    return null;
  }
  const accounts = systemAccounts();
  const owner = accounts.find((account) => account.uid === uid);
  if (uid !== 0 && owner !== undefined) return { ...owner, gid };
  for (const name of candidates) {
    const account = accounts.find((each) => each.name === name);
    if (account !== undefined) return account;
  }
  throw new UnreachableError(
    "PostgreSQL does not run as root, and this system has no user to run it as " +
      `(looked for ${candidates.join(", ")}). Start as another user, or set DATABASE_URL.`,
  );
}

/** Throws `UnreachableError` unless we are that user, or are root, who switches to it. */
function refuseForeign(uid: number, path: string): void {
  const ownUid = process.getuid?.();
  if (ownUid !== 0 && ownUid !== uid) throw belongsTo(uid, path);
}

const belongsTo = (uid: number, path: string) =>
  new UnreachableError(
    `The embedded PostgreSQL in ${path} belongs to the user ${nameOf(uid)}. ` +
      "Start as that user (or as root), or move the directory away to start with an empty database.",
  );

/** A container may run as an id without a name; initdb's own message for that is less clear. */
function refuseNameless(): void {
  try {
    userInfo();
  } catch (cause) {
    throw new UnreachableError(
      `The user id ${process.getuid?.()} has no name on this system (no line in /etc/passwd), which PostgreSQL ` +
        "needs. Start as a user that has one, or set DATABASE_URL.",
      { cause },
    );
  }
}

/** The options of `spawn` that make a child run as the account. */
export const runAs = (account: ServerUser): { uid?: number; gid?: number } =>
  account === null ? {} : { uid: account.uid, gid: account.gid };

/** Gives a file or directory to the account; for a link, the link itself. */
export async function changeOwner(account: ServerUser, path: string): Promise<void> {
  if (account !== null) await lchown(path, account.uid, account.gid);
}

/**
 * Whether the account can pass through every directory down to `directory` and read it. A shell that runs as the
 * account tries it, since mode bits ignore ACLs, mounts and mapped users.
 */
export async function canRead(account: ServerUser, directory: string): Promise<boolean> {
  if (account === null) return true;
  const shell = spawn("/bin/sh", ["-c", 'cd -P -- "$1" && [ -r . ]', "sh", directory], {
    ...runAs(account),
    cwd: "/",
    stdio: "ignore",
  });
  const [code] = (await once(shell, "close").catch((cause: unknown) => {
    throw new UnreachableError(
      `PostgreSQL does not run as root, and no process can be started as the user ${account.name} here. ` +
        "Start as another user, or set DATABASE_URL.",
      { cause },
    );
  })) as [number | null];
  return code === 0;
}

const nameOf = (uid: number): string =>
  systemAccounts().find((account) => account.uid === uid)?.name ?? `with id ${uid}`;

function systemAccounts(): NonNullable<ServerUser>[] {
  let passwd: string;
  try {
    passwd = readFileSync("/etc/passwd", "utf8");
  } catch {
    return [];
  }
  return (
    passwd
      .split("\n")
      .map((line) => line.split(":"))
      .filter((fields) => fields.length >= 4 && !fields[0]?.startsWith("#"))
      // macOS writes `nobody` as -2.
      .map(([name = "", , uid, gid]) => ({ name, uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 }))
  );
}
