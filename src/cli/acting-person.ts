import { userInfo } from "node:os";
import { InvalidArgumentError } from "commander";
import { UsageError } from "../platform/errors.ts";

const longest = 100;

/** Who does what is kept for the record, as `--by` names them. */
export function parsePerson(text: string): string {
  const name = text.trim();
  if (name === "" || name.length > longest || /\p{Cc}/u.test(name)) {
    throw new InvalidArgumentError(`Name who it is, in one line of at most ${longest} characters.`);
  }
  return name;
}

/**
 * The operating system's name of who runs the command. Throws `UsageError` where it has none, as in some containers.
 */
export function personAtWork(): string {
  try {
    return parsePerson(userInfo().username);
  } catch (cause) {
    throw new UsageError("This system does not tell who runs the command. Name them: --by NAME.", {
      cause,
    });
  }
}
