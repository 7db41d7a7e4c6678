import { execFile } from "node:child_process";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { benchDirectory, projectRoot } from "./places.ts";

const built = join(benchDirectory, "build");

/**
 * Compiles the program and what it is compared with, as a deployment does. The sources through tsx would be
 * another program: it adds a call to every function that is made. The types are the business of `npm run check`.
 */
export async function compile(): Promise<void> {
  const tsc = join(projectRoot, "node_modules", "typescript", "bin", "tsc");
  const run = (...args: string[]) =>
    promisify(execFile)(process.execPath, args, { cwd: projectRoot });
  await run(tsc, "-p", join(projectRoot, "bench"), "--noCheck");
  await run(join("src", "bin", "copy-sql.js"), built);
}

/** Where the compiled form of a source file is. */
export function compiled(source: URL): string {
  const path = relative(projectRoot, fileURLToPath(source));
  return join(built, path.replace(/\.ts$/, ".js"));
}
