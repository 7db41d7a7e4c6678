import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { chown, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { UnreachableError } from "./errors.ts";

/** The system user that the server runs as. `null` is ourselves: only root has to become somebody else. */
export type Account = { uid: number; gid: number; name: string } | null;

/** PostgreSQL refuses to run as root; these users exist on most systems, and none has to be made. */
const candidates = ["postgres", "nobody", "daemon"];

/**
 * Whose server it is: the owner of the data or, before there is any, of the directory that will hold it. So the
 * user stays the same over restarts, also when a better candidate is installed later, or when root starts what
 * a user made. Only where that is root itself is another user picked.
 */
export async function serverAccount(owned: string): Promise<Account> {
  const { uid, gid } = await stat(owned);
  const ownUid = process.getuid?.();
  if (ownUid !== 0) {
    if (uid === ownUid) return null;
    throw new UnreachableError(
      `The embedded PostgreSQL in ${owned} belongs to the user ${nameOf(uid)}. ` +
        "Start as that user (or as root), or move the directory away to begin anew.",
    );
  }
  if (uid !== 0) return { uid, gid, name: nameOf(uid) };
  const accounts = systemAccounts();
  for (const name of candidates) {
    const account = accounts.find((each) => each.name === name);
    if (account !== undefined) return account;
  }
  throw new UnreachableError(
    "PostgreSQL does not run as root, and this system has no user to run it as " +
      `(looked for ${candidates.join(", ")}). Start as another user, or set DATABASE_URL.`,
  );
}

/** The options of `spawn` that make a child run as the account. */
export const runAs = (account: Account): { uid?: number; gid?: number } =>
  account === null ? {} : { uid: account.uid, gid: account.gid };

/** Gives a file or directory to the account. */
export async function giveTo(account: Account, path: string): Promise<void> {
  if (account !== null) await chown(path, account.uid, account.gid);
}

/** What root makes in a user's directory belongs to that user, who will go on with it without root. */
export async function ownLikeParent(path: string): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = await stat(dirname(path));
  if (uid !== 0) await chown(path, uid, gid);
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
  return passwd
    .split("\n")
    .map((line) => line.split(":"))
    .filter((fields) => fields.length >= 4 && !fields[0]?.startsWith("#"))
    // macOS writes `nobody` as -2.
    .map(([name = "", , uid, gid]) => ({ name, uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 }));
}
