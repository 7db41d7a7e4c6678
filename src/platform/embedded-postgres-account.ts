import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { lchown, stat } from "node:fs/promises";
import { userInfo } from "node:os";
import { UnreachableError } from "./errors.ts";

/** The system user that the server runs as. `null` is ourselves: only root has to become somebody else. */
export type Account = { uid: number; gid: number; name: string } | null;

/** PostgreSQL refuses to run as root; these users exist on most systems, and none has to be made. */
const candidates = ["postgres", "nobody", "daemon"];

/** The owner of data that exists: it stays the same, also when root starts what a user made. */
export async function ownerOf(cluster: string): Promise<Account> {
  const { uid, gid } = await stat(cluster);
  if (uid === process.getuid?.()) return null;
  if (process.getuid?.() === 0) return { uid, gid, name: nameOf(uid) };
  throw belongsTo(uid, cluster);
}

/**
 * Who is to own the data that will be made in `base`: ourselves; for root the user whose directory it is, or
 * else one that exists for such purposes.
 */
export async function unprivilegedAccount(base: string): Promise<Account> {
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

/** Throws `UnreachableError` unless we own what a user id owns, or are root, who becomes its owner. */
export function refuseForeign(uid: number, path: string): void {
  const ownUid = process.getuid?.();
  if (ownUid !== 0 && ownUid !== uid) throw belongsTo(uid, path);
}

const belongsTo = (uid: number, path: string) =>
  new UnreachableError(
    `The embedded PostgreSQL in ${path} belongs to the user ${nameOf(uid)}. ` +
      "Start as that user (or as root), or move the directory away to begin anew.",
  );

/** In a container one may run as an id without a name; initdb then fails with less clear words. */
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
export const runAs = (account: Account): { uid?: number; gid?: number } =>
  account === null ? {} : { uid: account.uid, gid: account.gid };

/** Gives a file or directory to the account; of a link, the link. */
export async function giveTo(account: Account, path: string): Promise<void> {
  if (account !== null) await lchown(path, account.uid, account.gid);
}

/**
 * Whether the account can pass through every directory down to `directory` and read it. Asked of the system
 * (a shell that tries), since mode bits do not know of ACLs, mounts and mapped users.
 */
export async function canRead(account: Account, directory: string): Promise<boolean> {
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

function systemAccounts(): NonNullable<Account>[] {
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
