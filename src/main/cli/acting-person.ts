import { userInfo } from "node:os";
import { InvalidArgumentError } from "commander";
import { UsageError } from "../../platform/errors.ts";

const longest = 100;

/** Who does what is kept for the record, as `--by` names them. */
export function parsePerson(text: string): string {
  const name = text.trim();
  if (name === "" || name.length > longest || /\p{Cc}/u.test(name)) {
    throw new InvalidArgumentError(`Name who it is, in one line of at most ${longest} characters.`);
  }
  return name;
}

/** As whom the system runs the command. */
export interface SystemUser {
  /** Null where the system has no name for them, as in some containers. */
  name: string | null;
  /** Who called `sudo`. */
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

/** Users under whom programs run, also this one's in its image: they tell nobody. */
const nobodies = new Set(
  (
    "root admin administrator node app daemon nobody www-data service svc tallyhook postgres redis system ubuntu " +
    "debian ec2-user runner ci jenkins deploy docker container default user"
  ).split(" "),
);

/** Who runs the command, where that is a person: for what keeps no record. */
export const findPerson = ({ name, sudoUser }: SystemUser): string | null =>
  [sudoUser, name].find((each) => each !== null && isPerson(each)) ?? null;

/**
 * Who runs the command: who called `sudo`, or else the system's user. Throws `UsageError` where neither is a person,
 * so that no record says `root`.
 */
export function personAtWork(user: SystemUser): string {
  const person = findPerson(user);
  if (person !== null) return person;
  const { name } = user;
  const found = name === null ? "has no name for its user" : `runs it as "${name}"`;
  throw new UsageError(
    `This command keeps who did it for the record, and the system ${found}, which is no person. ` +
      'Say who you are: --by "Your Name".',
  );
}

function isPerson(user: string): boolean {
  try {
    return !nobodies.has(parsePerson(user).toLowerCase());
  } catch {
    return false;
  }
}
