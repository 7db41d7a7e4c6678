import { execFile } from "node:child_process";
import { join } from "node:path";
import { projectRoot } from "./project-root.ts";

const compiler = join(projectRoot, "node_modules/.bin/tsc");

/**
 * Returns what `tsc` prints, nothing when all is well. It takes little processor time, which the other tests need: on
 * several threads it ends sooner and takes twice as much, and its garbage collector, a third, is let work less.
 */
export const compile = (args: readonly string[], cwd: string): Promise<string> =>
  printed(compiler, [...args, "--singleThreaded"], {
    cwd,
    env: { ...process.env, GOGC: "400" },
  });

/** Returns what a command prints, or why it failed without a word. */
export const printed = (
  command: string,
  args: readonly string[],
  options: { cwd: string; env?: NodeJS.ProcessEnv },
): Promise<string> =>
  new Promise((resolve) => {
    execFile(command, args, options, (error, stdout, stderr) => resolve(stdout + stderr || (error?.message ?? "")));
  });
