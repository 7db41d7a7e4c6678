import { type Stats, closeSync, fstatSync, lstatSync, openSync, readFileSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { parseEnv } from "node:util";
import { ConfigurationError } from "../../platform/errors.ts";
import { errorCode } from "../../platform/postgres/errors.ts";
import type { Environment, ReadFile } from "../../platform/settings.ts";

export interface EnvironmentWithFile {
  environment: Environment;
  /** How many variables the file set; null if there is no file. */
  fromFile: number | null;
}

/** Windows editors put it at the start of a file. The parser would take it as part of the first name. */
const byteOrderMark = "\ufeff";

/**
 * Adds the `NAME=value` lines of a `.env` file to the environment. The environment wins, so that a file left behind
 * never overrides a deployment's settings. Throws `ConfigurationError` if the file exists and cannot be read, or has a
 * line of another form.
 */
export function withEnvFile(environment: Environment, path: string, read: ReadFile): EnvironmentWithFile {
  let text: string;
  try {
    text = read(path);
  } catch (error) {
    if (error instanceof ConfigurationError) throw error;
    if ((error as NodeJS.ErrnoException).code === "ENOENT") {
      return { environment, fromFile: null };
    }
    throw new ConfigurationError(
      `${path} exists and cannot be read (${errorCode(error) ?? "unknown error"}). Make it readable for the user who ` +
        "runs this, or start in a directory without it: settings in the environment need no file.",
    );
  }
  if (text.startsWith(byteOrderMark)) text = text.slice(byteOrderMark.length);
  const problem = findBadLine(text);
  if (problem !== null) throw new ConfigurationError(`${path}, ${problem}`);
  const given = Object.entries(parseEnv(text)).filter(([name]) => environment[name] === undefined);
  return { environment: { ...Object.fromEntries(given), ...environment }, fromFile: given.length };
}

/**
 * The first line that is not `NAME=value`, and its fault. Node's parser reports no error: it takes such a line for the
 * start of the next name, so the setting below it is lost. The line's text is not repeated, as it may be a secret.
 */
function findBadLine(text: string): string | null {
  let open: { quote: string; line: number } | null = null;
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (open !== null) {
      if (line.includes(open.quote)) open = null;
      continue;
    }
    if (/^\s*(?:#|$)/.test(line)) continue;
    const match = /^\s*(?:export\s+)?[\w.-]+\s*=\s*(.*)$/.exec(line);
    if (match === null) {
      return (
        `line ${index + 1} is not understood. Write one setting a line, as NAME=value; a line that begins with # ` +
        "is a comment."
      );
    }
    const [, value = ""] = match;
    const quote = ['"', "'", "`"].find((each) => value.startsWith(each));
    if (quote !== undefined && !value.includes(quote, 1)) open = { quote, line: index + 1 };
  }
  return open === null ? null : `line ${open.line}: the quotation mark in front of the value is never closed.`;
}

/**
 * Reads a `.env` file that another user may have written. Its author decides which database and which service the
 * program talks to. So the file must belong to this user, to root, or to the owner of its directory (in `/tmp`, the
 * owner and the author differ). Root reads no file that every user may write. Throws `ConfigurationError` for a file
 * that is not trusted.
 */
export const readEnvFile: ReadFile = (path) => {
  const file = openSync(path, "r");
  try {
    refuseForeign(path, fstatSync(file));
    return readFileSync(file, "utf8");
  } finally {
    closeSync(file);
  }
};

function refuseForeign(path: string, file: Stats): void {
  const user = process.geteuid?.();
  if (user === undefined) return;
  const trusted = new Set([user, 0, statSync(dirname(resolve(path))).uid]);
  // The link's owner must be trusted too, since that user chose the file.
  const foreign = [lstatSync(path).uid, file.uid].find((uid) => !trusted.has(uid));
  if (foreign !== undefined) {
    throw new ConfigurationError(
      `${path} belongs to the user with id ${foreign}, who is neither you, nor root, nor the owner of this ` +
        "directory. It was not read. Check what it says, then remove it, or take ownership of it (chown).",
    );
  }
  const others = 0o002;
  if (user === 0 && (file.mode & others) !== 0) {
    throw new ConfigurationError(
      `Every user of this machine may write to ${path}, so root does not read it. Check what it says, then run ` +
        `chmod o-w ${path}.`,
    );
  }
}
