import { parseEnv } from "node:util";
import type { Environment, ReadFile } from "../platform/settings.ts";

export interface EnvironmentWithFile {
  environment: Environment;
  /** How many variables the file gave; null where there is no file. */
  fromFile: number | null;
}

/**
 * The environment with what a `.env` file adds to it: `NAME=value` lines. What is set in the environment wins, so that a
 * deployment's settings are never replaced by a file that was left behind. `read` throws where there is no file.
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
    throw error;
  }
  const given = Object.entries(parseEnv(text)).filter(([name]) => environment[name] === undefined);
  return { environment: { ...Object.fromEntries(given), ...environment }, fromFile: given.length };
}
