import { execFile } from "node:child_process";
import { join } from "node:path";
import { projectRoot } from "./project-root.ts";

const compiler = join(projectRoot, "node_modules/.bin/tsc");

/**
 * Returns the output of `tsc`, empty without errors. It saves processor time, which the other tests need: on several
 * threads it would end sooner but use twice as much, and its garbage collector, a third of it, is set to run less.
 */
export const compile = (args: readonly string[], cwd: string): Promise<string> =>
  printed(compiler, [...args, "--singleThreaded"], {
    cwd,
    env: { ...process.env, GOGC: "400" },
  });

/** Returns a command's output, or why it failed without one. */
export const printed = (
  command: string,
  args: readonly string[],
  options: { cwd: string; env?: NodeJS.ProcessEnv },
): Promise<string> =>
  new Promise((resolve) => {
    execFile(command, args, options, (error, stdout, stderr) => resolve(stdout + stderr || (error?.message ?? "")));
  });
