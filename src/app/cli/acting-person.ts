import { userInfo } from "node:os";
import { InvalidArgumentError } from "commander";
import type { Actor } from "../people/audit.ts";
import { UsageError } from "../../platform/errors.ts";

const longest = 100;

/** Parses the name of the acting person in `--by`. It goes into the record. */
export function parsePerson(text: string): string {
  const name = text.trim();
  if (name === "" || name.length > longest || /\p{Cc}/u.test(name)) {
    throw new InvalidArgumentError(`Use a name of one line with at most ${longest} characters.`);
  }
  return name;
}

/** The system user that runs the command. */
export interface SystemUser {
  /** Null if the system has no name for the user, as in some containers. */
  name: string | null;
  /** The user who called `sudo`. */
  sudoUser: string | null;
}

export function systemUser(sudoUser: string | undefined): SystemUser {
  let name: string | null;
  try {
    name = userInfo().username;
  } catch {
    name = null;
  }
  return { name, sudoUser: sudoUser ?? null };
}

/** The actor of a command, for the record: the person in `--by`, otherwise `requirePerson`. */
export const commandActor = ({ user }: { user(): SystemUser }, by: string | undefined): Actor => ({
  accountId: null,
  name: by ?? requirePerson(user()),
  via: "command line",
  address: null,
});

/**
 * The actor of a command that scripts call and that never asks for a name: where the system knows no person, the record
 * has its user.
 */
export function scriptActor({ user }: { user(): SystemUser }, by: string | undefined): Actor {
  const found = user();
  const name = by ?? findPerson(found) ?? `system user ${found.name ?? "without a name"}`;
  return { accountId: null, name, via: "command line", address: null };
}

/** Shared and service accounts, including the one in this program's image: they identify no person. */
const sharedAccounts = new Set(
  (
    "root admin administrator node app daemon nobody www-data service svc tallyhook postgres redis system ubuntu " +
    "debian ec2-user runner ci jenkins deploy docker container default user"
  ).split(" "),
);

/** The person who runs the command, or null if the system knows none. */
export const findPerson = ({ name, sudoUser }: SystemUser): string | null =>
  [sudoUser, name].find((each) => each !== null && isPerson(each)) ?? null;

/**
 * The person who runs the command: the caller of `sudo`, otherwise the system's user. Throws `UsageError` if neither is
 * a person, so that no record says `root`.
 */
export function requirePerson(user: SystemUser): string {
  const person = findPerson(user);
  if (person !== null) return person;
  const { name } = user;
  const found = name === null ? "this system's user has no name" : `"${name}" is not a person`;
  throw new UsageError(`This command records who did it, and ${found}. Say who you are: --by "Your Name".`);
}

function isPerson(user: string): boolean {
  try {
    return !sharedAccounts.has(parsePerson(user).toLowerCase());
  } catch {
    return false;
  }
}
