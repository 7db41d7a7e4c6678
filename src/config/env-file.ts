import { parseEnv } from "node:util";
import { ConfigurationError } from "../platform/errors.ts";
import { errorCode } from "../platform/postgres-errors.ts";
import type { Environment, ReadFile } from "../platform/settings.ts";

export interface EnvironmentWithFile {
  environment: Environment;
  /** How many variables the file gave; null where there is no file. */
  fromFile: number | null;
}

/**
 * The environment with what a `.env` file adds to it: `NAME=value` lines. What is set in the environment wins, so that a
 * deployment's settings are never replaced by a file that was left behind. Throws
 * `ConfigurationError` where the file is there and cannot be read.
 */
export function withEnvFile(
  environment: Environment,
  path: string,
  read: ReadFile,
): EnvironmentWithFile {
  let text: string;
  try {
    text = read(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") {
      return { environment, fromFile: null };
    }
    throw new ConfigurationError(
      `${path} is there and cannot be read (${errorCode(error) ?? "unknown"}). Make it readable for who runs this, or ` +
        "start from a directory without it: what is set in the environment needs no file.",
    );
  }
  const given = Object.entries(parseEnv(text)).filter(([name]) => environment[name] === undefined);
  return { environment: { ...Object.fromEntries(given), ...environment }, fromFile: given.length };
}
